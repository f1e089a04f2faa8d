#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"
#include "hubferry/kube/credentials.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::kube {

/// One authentication method. See Credentials for the contract of each.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;

  virtual async::Awaitable<Result<std::string>> authorization_header() = 0;
  /// What authorization_header() returned last.
  [[nodiscard]] virtual std::string_view last_header() const = 0;
  [[nodiscard]] virtual std::optional<ClientCertificate> client_certificate() const { return std::nullopt; }
  virtual void invalidate() = 0;
};

/// The error when there is no credential: the request need not be sent.
inline Error no_credential(std::string message) {
  return {.kind = ErrorKind::unauthorized, .status = 0, .reason = {}, .message = std::move(message), .retry_after = {}};
}

/// Whether a token can stand in an HTTP header. One with a line end in it could smuggle in headers of its own.
inline bool fits_into_a_header(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace hubferry::kube
