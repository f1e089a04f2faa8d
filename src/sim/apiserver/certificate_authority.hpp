#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/sim/server.hpp"
#include "sim/apiserver/status_error.hpp"

struct X509_name_st;

namespace hubferry::sim {

class KeyPool;

/// A certificate with its key, in PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

/// The user of a client certificate, and its validity.
struct CertifiedUser {
  User user;
  async::WallTime not_before;
  async::WallTime not_after;
};

/// The user of a certificate's subject: CN, and a group for each O.
User user_of(const X509_name_st* subject);

/// Signs certificate requests, server certificates and client certificates. Its keys are fresh in every process.
class CertificateAuthority {
 public:
  CertificateAuthority(const std::string& name, async::WallTime now);
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;
  ~CertificateAuthority();

  /// Clients get their keys from there. Without it each has its own.
  void use_keys(std::shared_ptr<KeyPool> keys);

  [[nodiscard]] const std::string& certificate_pem() const;
  /// Signs a PEM request for client authentication. Errors: invalid.
  Outcome<std::string> sign(const std::string& request_pem, async::WallTime now, std::chrono::seconds lifetime);
  /// For a server with these names and addresses ("IP:127.0.0.1", "DNS:localhost").
  KeyPair issue_server(const std::vector<std::string>& names, async::WallTime now);
  /// The user of the certificate; nothing if we did not issue it, or the key does not match.
  [[nodiscard]] const std::optional<CertifiedUser>& identify(const std::string& certificate_pem,
                                                             const std::string& key_pem) const;
  KeyPair issue_client(const std::string& user, const std::vector<std::string>& groups, async::WallTime now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
