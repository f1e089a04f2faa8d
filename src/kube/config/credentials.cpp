#include "hubferry/kube/credentials.hpp"

#include "hubferry/kube/base64.hpp"
#include "kube/config/credential_source.hpp"
#include "kube/config/exec_plugin_source.hpp"
#include "kube/config/token_file_source.hpp"

namespace hubferry::kube {

namespace {

/// What the configuration itself holds; it never changes.
class FixedSource final : public CredentialSource {
 public:
  explicit FixedSource(std::string header) : header_(std::move(header)) {}

  async::Awaitable<Result<std::string>> authorization_header() override { co_return header_; }
  [[nodiscard]] std::string_view last_header() const override { return header_; }
  void invalidate() override {}

 private:
  std::string header_;
};

std::unique_ptr<CredentialSource> source_for(const ClientConfig& config, bool has_certificate, async::Clock& clock) {
  if (!config.token_file.empty()) return std::make_unique<TokenFileSource>(config.token_file, config.token, clock);
  if (!config.token.empty()) return std::make_unique<FixedSource>("Bearer " + config.token);
  if (!config.username.empty() || !config.password.empty())
    return std::make_unique<FixedSource>("Basic " + encode_base64(config.username + ":" + config.password));
  if (config.exec && !has_certificate) return std::make_unique<ExecPluginSource>(config, clock);
  return std::make_unique<FixedSource>("");
}

}  // namespace

Credentials::Credentials(const ClientConfig& config, async::Clock& clock) {
  if (!config.client_certificate_pem.empty())
    certificate_ = ClientCertificate{config.client_certificate_pem, config.client_key_pem};
  source_ = source_for(config, certificate_.has_value(), clock);
}

Credentials::~Credentials() = default;

async::Awaitable<Result<std::string>> Credentials::authorization_header() {
  return source_->authorization_header();
}

std::optional<ClientCertificate> Credentials::client_certificate() const {
  return certificate_ ? certificate_ : source_->client_certificate();
}

void Credentials::invalidate() {
  source_->invalidate();
}

void Credentials::invalidate(std::string_view rejected_header) {
  if (source_->last_header() == rejected_header) source_->invalidate();
}

}  // namespace hubferry::kube
