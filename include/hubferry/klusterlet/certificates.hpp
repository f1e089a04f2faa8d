#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/secret.hpp"

namespace hubferry::klusterlet {

using async::WallTime;

/// Who an agent is, on every hub: it keeps both names when it switches.
struct Identity {
  std::string cluster;
  std::string agent;

  bool operator==(const Identity&) const = default;

  /// "system:open-cluster-management:<cluster>:<agent>", the subject's CN and the user's name on a hub.
  [[nodiscard]] std::string common_name() const;
  /// The subject's O, and the user's groups on a hub.
  [[nodiscard]] std::vector<std::string> organizations() const;
};

/// A fresh ECDSA P-256 key and the request to have it certified, in PEM.
struct SigningRequest {
  obs::Secret key;
  std::string request;
  std::string public_key;  // its bits, to know a certificate by
};
/// The key comes from the system's entropy, never from async::Random: it is a secret.
SigningRequest make_signing_request(const Identity& identity);

/// What is read of one certificate.
struct CertificateInfo {
  std::string common_name;
  std::vector<std::string> organizations;
  WallTime not_before;
  WallTime not_after;
};

/// Every certificate of a PEM chain, in its order; empty when there is none or one of them cannot be read.
std::vector<CertificateInfo> read_certificates(const std::string& pem);

/// Is the chain's first certificate for the key of these public bits?
bool is_for_key(const std::string& certificate_pem, const std::string& public_key);

/// Is this PEM the key of the chain's first certificate?
bool is_key_of(const std::string& certificate_pem, const obs::Secret& key);

/// When a whole chain is valid: from the latest notBefore to the earliest notAfter.
struct Validity {
  WallTime from;
  WallTime until;

  bool operator==(const Validity&) const = default;
};
std::optional<Validity> validity_of(const std::vector<CertificateInfo>& chain);

/// The share of its lifetime that a certificate has left when it is replaced, drawn anew at each check.
inline constexpr double least_remaining = 0.20;
inline constexpr double most_remaining = 0.25;

/// Is it time to replace it, for this draw of the threshold?
bool is_due_for_rotation(const Validity& validity, WallTime now, double threshold);
/// When the first check can find it due.
WallTime first_rotation_check(const Validity& validity);

}  // namespace hubferry::klusterlet
