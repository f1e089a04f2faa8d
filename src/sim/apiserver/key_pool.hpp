#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hubferry/klusterlet/certificates.hpp"

namespace hubferry::sim {

/// The keys of simulated clients, which share them: to make one, to write it and to read it again takes OpenSSL as long
/// as a simulated server needs for a dozen requests. No two of the next dozens of clients have the same one. Each is
/// recognized by its text.
class KeyPool final : public klusterlet::KeySource {
 public:
  struct Entry {
    evp_pkey_st* key = nullptr;
    std::string pem;
    std::string public_bits;
  };

  KeyPool() = default;
  ~KeyPool() override;

  /// Makes all keys now, instead of each when it is first used.
  void fill();
  /// Each in turn.
  const Entry& next();

  klusterlet::SigningRequest make_request(const klusterlet::Identity& identity) override;
  klusterlet::CertificateChain read(const std::string& pem) override;
  bool fits(const std::string& certificate_pem, const obs::Secret& key) override;

  /// read() of this certificate, by who has made it: nobody needs to parse it.
  void remember(const std::string& pem, klusterlet::CertificateChain chain);

  /// Null: it is not one of these.
  [[nodiscard]] const Entry* find_private(const std::string& pem) const;
  [[nodiscard]] const Entry* find_public(const std::string& bits) const;

 private:
  void add();

  std::vector<std::unique_ptr<Entry>> entries_;
  std::unordered_map<std::string, const Entry*> by_text_;
  std::unordered_map<std::string, const Entry*> by_bits_;
  std::unordered_map<std::string, klusterlet::CertificateChain> chains_;  // by their text
  std::size_t next_ = 0;
};

}  // namespace hubferry::sim
