#include "hubferry/klusterlet/klusterlet_store.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::klusterlet {

namespace {

// Also how long `kubectl replace --force` may take.
constexpr auto deletion_grace = std::chrono::seconds{10};

kube::CacheOptions only(const std::string& name) {
  kube::CacheOptions options;
  options.field_selector = "metadata.name=" + name;
  return options;
}

kube::CacheOptions in_namespace(const std::string& ns) {
  kube::CacheOptions options;
  options.ns = ns;
  return options;
}

}  // namespace

KlusterletStore::KlusterletStore(kube::Api& api, KlusterletStoreOptions options, kube::Env env)
    : api_(api),
      options_(std::move(options)),
      env_(std::move(env)),
      klusterlets_(api_, ocm::klusterlets, only(options_.klusterlet), kube::object_decoder(), env_),
      secrets_(api_, kube::resources::secrets, in_namespace(options_.ns), kube::object_decoder(), env_) {}

Awaitable<> KlusterletStore::run() {
  auto follow = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(klusterlets_.run());
    scope.spawn(secrets_.run());
    co_await wait_synced();
    const auto look = [this](const kube::Key&, const auto&, const auto&) { apply_settings(); };
    const auto look_at_secret = [this](const kube::Key& key, const auto& old, const auto& now) {
      saw_secret(key, old != nullptr, now != nullptr);
      apply_settings();
    };
    const auto of_klusterlets = klusterlets_.subscribe(look);
    const auto of_secrets = secrets_.subscribe(look_at_secret);
    apply_settings();
    co_await write_status();
  };
  co_await async::with_scope(follow);
}

std::shared_ptr<const kube::Object> KlusterletStore::klusterlet() const {
  auto found = klusterlets_.get({{}, options_.klusterlet});
  return found == nullptr || found->is_being_deleted() ? nullptr : found;
}

Awaitable<> KlusterletStore::wait_ready() {
  co_await wait_synced();
  if (klusterlet() == nullptr)
    env_.log.info("waiting for the Klusterlet to be created", {{"klusterlet", options_.klusterlet}});
  while (!present_) co_await wait_for_change(version());
}

Awaitable<> KlusterletStore::wait_synced() {
  co_await klusterlets_.wait_synced();
  co_await secrets_.wait_synced();
}

std::string KlusterletStore::cluster_name() const {
  const auto found = klusterlet();
  return found == nullptr ? std::string{} : std::string{found->string_at({"spec", "clusterName"})};
}

Awaitable<> KlusterletStore::wait_for_end(std::string cluster) {
  while (true) {
    while (present_) {
      const auto named = cluster_name();
      if (!named.empty() && named != cluster && options_.cluster_name.empty()) {
        env_.log.warn("the Klusterlet names another cluster, registering anew",
                      {{"before", cluster}, {"cluster", named}});
        co_return;
      }
      co_await wait_for_change(version());
    }
    const auto back = async::later(env_.clock.now(), deletion_grace);
    while (!present_ && co_await async::before_deadline(env_.clock, back, wait_for_change(version()))) {
    }
    if (present_) continue;
    env_.log.warn("the Klusterlet was deleted, agent stopped", {{"klusterlet", options_.klusterlet}});
    co_return;
  }
}

Awaitable<> KlusterletStore::follow(std::function<Awaitable<>(std::string cluster_name)> work) {
  while (true) {
    co_await wait_ready();
    const auto cluster = cluster_name();
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(work(cluster));
      co_await wait_for_end(cluster);
      scope.stop();
    };
    co_await async::with_scope(body);
  }
}

bool KlusterletStore::check_secrets(const KlusterletSettings& settings) {
  bool usable = true;
  unreadable_.clear();
  for (const auto& name : settings.secrets) {
    auto config = read_bootstrap(name);
    const auto why = config.unreadable.empty() ? why_unparsable(config) : config.name + ": " + config.unreadable;
    if (!why) {
      last_readable_.insert_or_assign(name, std::move(config));
      continue;
    }
    unreadable_ += (unreadable_.empty() ? "" : "; ") + *why;
    const bool is_new = std::ranges::find(settings_.secrets, name) == settings_.secrets.end();
    usable = usable && (settings_.secrets.empty() || !is_new || last_readable_.contains(name));
  }
  return usable;
}

void KlusterletStore::saw_secret(const kube::Key& key, bool was_there, bool is_there) {
  if (key.name != ocm::names::hub_kubeconfig_secret) return;
  const bool lost = is_there ? false : lost_secret_ || was_there;
  if (lost == std::exchange(lost_secret_, lost)) return;
  if (lost) env_.log.warn("the Secret with the hub kubeconfig was deleted", {{"secret", key.name}});
  changed();
}

void KlusterletStore::apply_settings() {
  const auto found = klusterlet();
  const bool appeared = present_ != (found != nullptr);
  present_ = found != nullptr;
  if (!present_) {
    if (appeared) changed();
    return;
  }
  latest_settings_ = read_klusterlet(*found);
  const bool usable = latest_settings_.problem.empty() && check_secrets(latest_settings_);
  status_changed_.notify();
  const auto before = settings_;
  if (usable) settings_ = latest_settings_;
  std::vector<BootstrapConfig> list;
  for (const auto& name : settings_.secrets) {
    auto config = read_bootstrap(name);
    const bool readable = config.unreadable.empty() && !why_unparsable(config);
    const auto last = last_readable_.find(name);
    if (!readable && last != last_readable_.end()) config = last->second;
    list.push_back(std::move(config));
  }
  std::erase_if(last_readable_, [this](const auto& entry) {
    return std::ranges::find(settings_.secrets, entry.first) == settings_.secrets.end() &&
           std::ranges::find(latest_settings_.secrets, entry.first) == latest_settings_.secrets.end();
  });
  // A new name of the cluster counts too, although it is not part of the settings: wait_for_end() looks for it.
  if (list == bootstraps_ && settings_ == before && !appeared && cluster_name() == named_) return;
  named_ = cluster_name();
  bootstraps_ = std::move(list);
  changed();
}

}  // namespace hubferry::klusterlet
