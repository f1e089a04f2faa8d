#pragma once

#include <memory>

#include "hubferry/async/clock.hpp"
#include "kube/config/credential_source.hpp"

namespace hubferry::kube {

/// A program that provides credentials. One run at a time, shared by all waiters. A run has a time limit of its own and
/// outlives its callers, whose deadlines may be shorter than it takes; the end of the source kills it.
class ExecPluginSource final : public CredentialSource {
 public:
  ExecPluginSource(ClientConfig config, async::Clock& clock);
  ExecPluginSource(const ExecPluginSource&) = delete;
  ExecPluginSource& operator=(const ExecPluginSource&) = delete;
  ~ExecPluginSource() override;

  async::Awaitable<Result<std::string>> authorization_header() override;
  [[nodiscard]] std::string_view last_header() const override;
  [[nodiscard]] std::optional<ClientCertificate> client_certificate() const override;
  void invalidate() override;

 private:
  class Runs;
  std::shared_ptr<Runs> runs_;
};

}  // namespace hubferry::kube
