#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/secret.hpp"

struct evp_pkey_st;

namespace hubferry::klusterlet {

using async::WallTime;

/// The identity of an agent, the same on every hub: it keeps both names when it switches.
struct Identity {
  std::string cluster;
  std::string agent;

  bool operator==(const Identity&) const = default;

  /// "system:open-cluster-management:<cluster>:<agent>", the subject's CN and the user's name on a hub.
  [[nodiscard]] std::string common_name() const;
  /// The subject's O, and the user's groups on a hub.
  [[nodiscard]] std::vector<std::string> organizations() const;
};

/// A fresh ECDSA P-256 key and its certificate signing request, in PEM.
struct SigningRequest {
  obs::Secret key;
  std::string request;
  std::string public_key;  // its bits, to recognize its certificate
};
/// The key comes from the system's entropy, never from async::Random: it is a secret.
SigningRequest make_signing_request(const Identity& identity);

/// The request alone, for a key that is there already, and the bits of its public key.
std::string sign_request(const Identity& identity, evp_pkey_st* key, const std::string& public_key);

/// The fields that we use of one certificate.
struct CertificateInfo {
  std::string common_name;
  std::vector<std::string> organizations;
  WallTime not_before;
  WallTime not_after;
};

/// The certificates of a PEM chain, in order; empty if there is none or one of them cannot be parsed.
std::vector<CertificateInfo> read_certificates(const std::string& pem);

/// True if the chain's first certificate was issued for this public key.
bool is_for_key(const std::string& certificate_pem, const std::string& public_key);

/// The same bits of the chain's first certificate; empty if it cannot be parsed.
std::string public_key_of(const std::string& certificate_pem);

/// True if this PEM is the private key of the chain's first certificate.
bool is_key_of(const std::string& certificate_pem, const obs::Secret& key);

/// What a PEM chain contains.
struct CertificateChain {
  std::vector<CertificateInfo> certificates;  // read_certificates()
  std::string public_key;                     // of the first: public_key_of()
};

/// Where the keys of an agent come from, and who reads its certificates.
class KeySource {
 public:
  KeySource() = default;
  KeySource(const KeySource&) = delete;
  KeySource& operator=(const KeySource&) = delete;
  virtual ~KeySource() = default;

  virtual SigningRequest make_request(const Identity& identity) = 0;
  virtual CertificateChain read(const std::string& pem) = 0;
  /// As is_key_of().
  virtual bool fits(const std::string& certificate_pem, const obs::Secret& key) = 0;
};

/// A fresh key for each request, and everything is read: make_signing_request(), read_certificates(), is_key_of().
KeySource& fresh_keys();

/// The SHA-256 of a text, in hexadecimal: to recognize it without keeping it.
std::string digest_of(const std::string& text);

/// The validity of a whole chain: from the latest notBefore to the earliest notAfter.
struct Validity {
  WallTime from;
  WallTime until;

  bool operator==(const Validity&) const = default;
};
std::optional<Validity> validity_of(const std::vector<CertificateInfo>& chain);

/// A certificate is rotated when this share of its lifetime remains, drawn anew at each check.
inline constexpr double least_remaining = 0.20;
inline constexpr double most_remaining = 0.25;

/// True if it is due for rotation, for this draw of the threshold.
bool is_due_for_rotation(const Validity& validity, WallTime now, double threshold);
/// The earliest time at which a check can find it due.
WallTime first_rotation_check(const Validity& validity);

}  // namespace hubferry::klusterlet
