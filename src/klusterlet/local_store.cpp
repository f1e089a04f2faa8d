#include "hubferry/klusterlet/local_store.hpp"

#include <deque>

namespace hubferry::klusterlet {

namespace {

kube::ClientConfig parse_now(const BootstrapConfig& bootstrap) {
  auto config = kube::parse_kubeconfig(bootstrap.kubeconfig.reveal(), bootstrap.name, bootstrap.base);
  config.server = hub_url(config.server);
  return config;
}

/// What was parsed last: the same few texts are read at each change of a list, and by all agents of a simulated fleet.
/// Nothing is kept of a file to which a text refers.
class ParsedKubeconfigs {
 public:
  const kube::ClientConfig& parse(const BootstrapConfig& bootstrap) {
    for (const auto& known : known_)
      if (known.name == bootstrap.name && known.text == bootstrap.kubeconfig) return known.config;
    auto config = parse_now(bootstrap);
    known_.push_front({bootstrap.name, bootstrap.kubeconfig, std::move(config)});
    if (known_.size() > most_known) known_.pop_back();
    return known_.front().config;
  }

 private:
  static constexpr std::size_t most_known = 32;

  struct Known {
    std::string name;
    obs::Secret text;
    kube::ClientConfig config;
  };
  std::deque<Known> known_;
};

}  // namespace

kube::ClientConfig BootstrapConfig::parse() const {
  if (!unreadable.empty()) throw kube::ConfigError(name + ": " + unreadable);
  if (base) return parse_now(*this);
  static thread_local ParsedKubeconfigs parsed;
  return parsed.parse(*this);
}

std::optional<std::string> why_unparsable(const BootstrapConfig& bootstrap) {
  try {
    static_cast<void>(bootstrap.parse());
    return std::nullopt;
  } catch (const kube::ConfigError& error) {
    return error.what();
  }
}

std::optional<std::string> transport_problem(const kube::ClientConfig& config) {
  if (!config.server.starts_with("http://")) return std::nullopt;
  return "its server " + config.server + " is not https: the credential would be sent in clear text";
}

Awaitable<kube::Result<>> LocalStore::put_bootstraps(std::vector<BootstrapConfig>, std::optional<Duration>) {
  kube::Error error;
  error.kind = kube::ErrorKind::unsupported;
  error.message = "the list of hubs of this agent cannot be changed by a hub";
  co_return error;
}

Awaitable<> LocalStore::wait_for_change(std::uint64_t seen) {
  while (version_ == seen) co_await waiters_.wait();
}

void LocalStore::changed() {
  ++version_;
  waiters_.wake_all();
}

Awaitable<kube::Result<>> MemoryStore::put_bootstraps(std::vector<BootstrapConfig> list,
                                                      std::optional<Duration> timeout) {
  const bool timeout_changed = timeout && timeout != timeout_;
  if (timeout) timeout_ = timeout;
  const auto before = version();
  if (list_decides_) std::erase_if(list, [](const BootstrapConfig& entry) { return entry.fallback; });
  set_bootstraps(std::move(list));
  if (timeout_changed && version() == before) changed();
  co_return kube::Result<>{};
}

void MemoryStore::set_bootstraps(std::vector<BootstrapConfig> list) {
  if (list == bootstraps_) return;
  bootstraps_ = std::move(list);
  changed();
}

std::optional<bool> MemoryStore::multiple_hubs() const {
  if (!list_decides_) return std::nullopt;
  return bootstraps_.size() > 1;
}

Awaitable<kube::Result<std::optional<HubSecret>>> MemoryStore::load() {
  co_return secret_;
}

Awaitable<kube::Result<>> MemoryStore::save(HubSecret secret) {
  secret_ = std::move(secret);
  ++saves_;
  co_return kube::Result<>{};
}

}  // namespace hubferry::klusterlet
