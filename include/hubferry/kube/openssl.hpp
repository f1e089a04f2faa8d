#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

/// RAII owners for OpenSSL's objects, and conversions to text. Only for .cpp files: these headers are large.
namespace hubferry::kube::openssl {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Request = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;

/// To be written to.
inline Bio make_bio() {
  return Bio{BIO_new(BIO_s_mem())};
}

/// Reads `text`, which must outlive it.
inline Bio reader_of(const std::string& text) {
  return Bio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

inline std::string content_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string{data, static_cast<std::size_t>(size)} : std::string{};
}

/// The point of a P-256 key, as certificates and requests contain it; empty if it cannot be had.
std::string public_bits(const EVP_PKEY* key);
/// The same of what a certificate or a request contains, whatever kind of key that is.
std::string public_bits(const X509_PUBKEY* key);
/// Puts a P-256 key into a certificate or a request. Without the key itself: OpenSSL takes longer to encode it than to
/// sign with it. False if that fails.
bool put_public_bits(X509_PUBKEY* into, const std::string& bits);

/// The values of a subject's field such as NID_commonName, in order.
std::vector<std::string> entries_of(const X509_NAME* subject, int field);

}  // namespace hubferry::kube::openssl
