#include "hubferry/sim/network.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>

#include "hubferry/kube/server_url.hpp"
#include "sim/apiserver/core.hpp"
#include "sim/apiserver/key_pool.hpp"

namespace hubferry::sim {

namespace {

/// A server that does not exist, or whose certificate cannot be verified.
class UnreachableApi final : public kube::Api {
 public:
  UnreachableApi(std::string name, std::string why) : name_(std::move(name)), why_(std::move(why)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  kube::Awaitable<kube::Result<kube::Object>> call(kube::Request) override { return refuse<kube::Object>(); }
  kube::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource, kube::ListOptions, const kube::Decoder&) override {
    return refuse<kube::ListPage>();
  }
  kube::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource, kube::WatchOptions,
                                                                          const kube::Decoder&) override {
    return refuse<std::unique_ptr<kube::WatchStream>>();
  }
  kube::Awaitable<kube::Result<json::value>> get_path(std::string) override { return refuse<json::value>(); }

 private:
  template <typename T>
  kube::Awaitable<kube::Result<T>> refuse() {
    kube::Error error{kube::ErrorKind::unreachable, 0, {}, why_, std::nullopt};
    co_await async::asio::post(async::asio::deferred);
    co_return error;
  }

  std::string name_;
  std::string why_;
};

bool is_trusted(Core& core, const std::string& url, const kube::ClientConfig& config) {
  if (url.starts_with("http://") || config.insecure_skip_tls_verify) return true;
  return config.ca_pem.find(core.authority().certificate_pem()) != std::string::npos;
}

/// Authenticates the configuration's credential, at each call.
Identify identify_by(const std::shared_ptr<Core>& core, const kube::ClientConfig& config) {
  if (!config.token.empty()) return [core = core.get(), token = config.token] { return core->authenticate(token); };
  const auto& certified = core->authority().identify(config.client_certificate_pem, config.client_key_pem);
  if (!certified) return [] { return std::optional<User>{}; };
  return [core = core.get(), certified = *certified]() -> std::optional<User> {
    const auto now = core->clock().wall_now();
    if (now < certified.not_before || now >= certified.not_after) return std::nullopt;
    return certified.user;
  };
}

}  // namespace

Network::Network() : keys_(std::make_shared<KeyPool>()) {}

klusterlet::KeySource& Network::keys() const {
  return *keys_;
}

void Network::make_keys() {
  keys_->fill();
}

void Network::add(const std::string& url, Server& server) {
  server.core()->authority().use_keys(keys_);
  const auto normalized = kube::parse_server_url(url).text();
  servers_[normalized] = server.core();
  urls_.try_emplace(server.core().get(), normalized);
}

std::shared_ptr<kube::Api> Network::connect(const kube::ClientConfig& config) const {
  const auto url = kube::parse_server_url(config.server).text();
  const auto name = config.cluster_name.empty() ? config.name : config.cluster_name;
  const auto found = servers_.find(url);
  if (found == servers_.end()) return std::make_shared<UnreachableApi>(name, "connection to " + url + " refused");
  const auto& core = found->second;
  if (!is_trusted(*core, url, config))
    return std::make_shared<UnreachableApi>(name, url + ": certificate signed by unknown authority");
  std::shared_ptr<kube::Api> connection = make_direct_api(core, identify_by(core, config));
  return intercept_ ? intercept_(std::move(connection)) : connection;
}

kube::ClientConfig Network::address_of(const Server& server) const {
  const auto found = urls_.find(server.core().get());
  if (found == urls_.end()) throw std::invalid_argument(server.name() + " has no URL in this network");
  return describe_server(*server.core(), found->second);
}

kube::ClientConfig Network::config_for(const Server& server, const User& user, bool by_certificate) const {
  auto config = address_of(server);
  add_credential(config, *server.core(), user, by_certificate);
  return config;
}

}  // namespace hubferry::sim
