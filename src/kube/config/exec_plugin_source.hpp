#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/async/wait_list.hpp"
#include "kube/config/credential_source.hpp"
#include "kube/config/exec_credential.hpp"

namespace hubferry::kube {

/// A program that provides credentials. One run at a time, shared by all waiters.
class ExecPluginSource final : public CredentialSource {
 public:
  ExecPluginSource(ClientConfig config, async::Clock& clock);

  async::Awaitable<Result<std::string>> authorization_header() override;
  [[nodiscard]] std::string_view last_header() const override { return header_; }
  [[nodiscard]] std::optional<ClientCertificate> client_certificate() const override { return credential_.certificate; }
  void invalidate() override;

 private:
  [[nodiscard]] bool must_run() const;
  [[nodiscard]] bool expires_within(async::Duration span) const;
  /// Runs the plugin and keeps what it says, or why it said nothing.
  async::Awaitable<> run();
  async::Awaitable<ExecCredential> ask();
  [[nodiscard]] Error failure(const std::string& message) const;

  ClientConfig config_;
  async::Clock& clock_;

  bool running_ = false;
  async::WaitList finished_;                   // waiters for a run in flight
  std::optional<async::TimePoint> ran_at_;     // when the last run that was not cancelled ended
  std::optional<async::TimePoint> forced_at_;  // when the last run began that invalidate() had asked for
  bool has_credential_ = false;
  bool invalidated_ = false;  // the server refused credential_
  ExecCredential credential_;
  std::string header_;
  std::optional<Error> failure_;  // of the last run
};

}  // namespace hubferry::kube
