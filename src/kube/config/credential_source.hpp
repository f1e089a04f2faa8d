#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"
#include "hubferry/kube/credentials.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::kube {

/// One way to prove who we are. See Credentials for what each promises.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;

  virtual async::Awaitable<Result<std::string>> authorization_header() = 0;
  /// What authorization_header() returned last.
  [[nodiscard]] virtual std::string_view last_header() const = 0;
  [[nodiscard]] virtual std::optional<ClientCertificate> client_certificate() const { return std::nullopt; }
  virtual void invalidate() = 0;
};

/// We have nothing to show: the request need not be sent.
inline Error no_credential(std::string message) {
  return {.kind = ErrorKind::unauthorized, .status = 0, .reason = {}, .message = std::move(message), .retry_after = {}};
}

}  // namespace hubferry::kube
