#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

namespace hubferry::test {

/// A certificate and its key, as PEM.
struct Identity {
  std::string certificate_pem;
  std::string key_pem;
};

/// A certificate authority of the test's own.
class Authority {
 public:
  explicit Authority(const std::string& name);
  /// An intermediate one, signed by `issuer`.
  Authority(const std::string& name, const Authority& issuer);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  [[nodiscard]] const std::string& certificate_pem() const { return certificate_pem_; }

  /// A private key, encrypted with a passphrase.
  [[nodiscard]] static std::string encrypted(const std::string& key_pem, std::string passphrase);
  /// For these names: "DNS:localhost", "IP:127.0.0.1". Valid from an hour ago, for `hours` from now (negative:
  /// expired).
  [[nodiscard]] Identity issue(const std::vector<std::string>& names, int hours = 1) const;

 private:
  EVP_PKEY* key_;
  X509* certificate_;
  std::string certificate_pem_;
};

}  // namespace hubferry::test
