#include <algorithm>
#include <boost/json/array.hpp>
#include <limits>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/object_follower.hpp"
#include "klusterlet/session.hpp"

// The ManifestWork by which a hub sends its agents their list of hubs.
namespace hubferry::klusterlet {

namespace {

using kube::json::object;

/// What the API of Klusterlets allows.
constexpr std::int64_t most_timeout_seconds = std::numeric_limits<std::int32_t>::max();

const object* find_manifest(const kube::Object& work, std::string_view kind, std::string_view name) {
  const auto* manifests = work.find({"spec", "workload", "manifests"});
  if (manifests == nullptr || !manifests->is_array()) return nullptr;
  for (const auto& manifest : manifests->get_array()) {
    if (!manifest.is_object()) continue;
    const auto& candidate = manifest.get_object();
    if (kube::string_at(candidate, {"kind"}) == kind &&
        (name.empty() || kube::string_at(candidate, {"metadata", "name"}) == name))
      return &candidate;
  }
  return nullptr;
}

std::optional<BootstrapConfig> bootstrap_of(const kube::Object& work, std::string_view secret_name) {
  const auto* secret = find_manifest(work, "Secret", secret_name);
  if (secret == nullptr) return std::nullopt;
  std::string text{kube::string_at(*secret, {"stringData", "kubeconfig"})};
  if (text.empty())
    text = kube::decode_base64(kube::string_at(*secret, {"data", "kubeconfig"})).value_or(std::string{});
  if (text.empty()) return std::nullopt;
  return BootstrapConfig{std::string{secret_name}, obs::Secret{std::move(text)}, std::nullopt};
}

std::string server_of(const BootstrapConfig& bootstrap) {
  try {
    return bootstrap.parse().server;
  } catch (const kube::ConfigError&) {
    return {};
  }
}

/// The entry for this server, for which `sample` is a kubeconfig. Texts are compared first: most of the time they are
/// equal, and parsing is slow.
std::vector<BootstrapConfig>::iterator find_server(std::vector<BootstrapConfig>& list, const BootstrapConfig& sample,
                                                   const std::string& server) {
  const auto equal =
      std::ranges::find_if(list, [&](const BootstrapConfig& entry) { return entry.kubeconfig == sample.kubeconfig; });
  if (equal != list.end()) return equal;
  return std::ranges::find_if(list, [&](const BootstrapConfig& entry) { return server_of(entry) == server; });
}

bool is_applied(const kube::Object& work) {
  const auto* applied = kube::find_condition(work, "Applied");
  if (applied == nullptr || kube::string_at(*applied, {"status"}) != "True") return false;
  const auto* generation = applied->if_contains("observedGeneration");
  return generation == nullptr || !generation->is_int64() || generation->get_int64() == work.generation();
}

/// ReadOnly manifests are only compared, but reported as applied: as the work agent of Open Cluster Management does.
bool is_read_only(const kube::Object& work) {
  const auto* configs = work.find({"spec", "manifestConfigs"});
  if (configs == nullptr || !configs->is_array()) return false;
  return std::ranges::any_of(configs->get_array(), [](const kube::json::value& config) {
    return config.is_object() && kube::string_at(config.get_object(), {"updateStrategy", "type"}) == "ReadOnly";
  });
}

bool put_applied(object& work, WallTime now) {
  auto& status = work["status"];
  if (!status.is_object()) status = object{};
  const auto* generation = kube::find(work, {"metadata", "generation"});
  const kube::Condition applied{
      .type = "Applied",
      .status = kube::ConditionStatus::yes,
      .reason = "AppliedManifestComplete",
      .message = "Apply manifest complete",
      .observed_generation = generation != nullptr && generation->is_int64() ? generation->get_int64() : 0};
  return kube::set_condition(status.get_object(), applied, now);
}

}  // namespace

KlusterletWork read_klusterlet_work(const kube::Object& manifest_work, Duration least_timeout) {
  KlusterletWork result;
  result.own = bootstrap_of(manifest_work, ocm::names::bootstrap_secret);
  const auto* klusterlet = find_manifest(manifest_work, ocm::klusterlets.kind, {});
  if (klusterlet == nullptr) return result;
  result.has_klusterlet = true;
  const auto* config =
      kube::find(*klusterlet, {"spec", "registrationConfiguration", "bootstrapKubeConfigs", "localSecretsConfig"});
  const auto* names = config == nullptr ? nullptr : kube::find(*config, {"kubeConfigSecrets"});
  if (names == nullptr || !names->is_array()) return result;
  const auto* seconds = kube::find(*config, {"hubConnectionTimeoutSeconds"});
  if (seconds != nullptr && seconds->is_int64() && seconds->get_int64() > 0)
    result.timeout =
        std::max<Duration>(std::chrono::seconds{std::min(seconds->get_int64(), most_timeout_seconds)}, least_timeout);
  for (const auto& entry : names->get_array()) {
    if (!entry.is_object()) continue;
    auto bootstrap = bootstrap_of(manifest_work, kube::string_at(entry.get_object(), {"name"}));
    if (bootstrap) result.list.push_back(std::move(*bootstrap));
  }
  return result;
}

std::vector<BootstrapConfig> merge_bootstraps(const std::vector<BootstrapConfig>& known, const KlusterletWork& work,
                                              const BootstrapConfig& in_use, const std::string& server_in_use) {
  auto merged = work.list;
  std::erase_if(merged, [](const BootstrapConfig& entry) { return why_unparsable(entry).has_value(); });
  if (!merged.empty() && find_server(merged, in_use, server_in_use) == merged.end()) merged.push_back(in_use);
  // As for a Klusterlet, one hub is no list: with its sender the agent would lose all hubs.
  if (merged.size() > 1) {
    for (auto& entry : merged) entry.sent = true;
    return merged;
  }
  merged = known;
  const auto is_known = [&](const BootstrapConfig& entry) { return entry.kubeconfig == work.own->kubeconfig; };
  if (work.own && std::ranges::none_of(known, is_known)) {
    const auto server = server_of(*work.own);
    if (const auto same = find_server(merged, *work.own, server); !server.empty() && same != merged.end()) {
      same->kubeconfig = work.own->kubeconfig;
      same->base.reset();
      same->authority.clear();
    }
  }
  if (work.has_klusterlet)
    for (auto& entry : merged) entry.fallback = entry.sent && server_of(entry) != server_in_use;
  return merged;
}

namespace {

/// What a store has to keep: names may differ, since it has names of its own.
bool is_same_list(const std::vector<BootstrapConfig>& one, const std::vector<BootstrapConfig>& other) {
  return std::ranges::equal(one, other, [](const BootstrapConfig& left, const BootstrapConfig& right) {
    return left.is_same(right) && left.fallback == right.fallback;
  });
}

}  // namespace

Awaitable<> Session::watch_work() {
  const auto& cluster = agent_.options.cluster_name;
  const kube::Key key{cluster, cluster + "-klusterlet"};
  ObjectFollower follower{*api_, ocm::manifest_works, key, kube::object_decoder(), agent_.env};
  follower.begin_with_watch({});  // most clusters have none
  // Until the hub has the cluster it has no work for it. And this connection then resumes the TLS session of the first,
  // with which it shares the hub's certificate: thousands of agents wait at once.
  co_await cluster_seen_.wait();
  async::Backoff backoff{{}, agent_.env.clock, agent_.env.random};
  while (true) {
    auto next = co_await follower.next();
    if (next == nullptr) continue;
    auto work = *std::static_pointer_cast<const kube::Object>(next);
    next.reset();
    while (!work.is_being_deleted() && !co_await take_work(work)) {
      co_await backoff.pause();
      // It may have been corrected meanwhile, or deleted.
      auto latest = co_await api_->get(ocm::manifest_works, key);
      if (!latest && latest.error().kind == kube::ErrorKind::not_found) break;
      if (latest) work = std::move(*latest);
    }
  }
}

Awaitable<bool> Session::take_work(kube::Object work) {
  const auto known = agent_.store.bootstraps();
  // A shorter one of its own is the administrator's will.
  const auto least_timeout = std::min<Duration>(least_sent_timeout, agent_.options.connection_timeout);
  const auto sent = is_read_only(work) ? KlusterletWork{} : read_klusterlet_work(work, least_timeout);
  auto merged = merge_bootstraps(known, sent, agent_.selected->bootstrap, agent_.selected->config.server);
  if (!is_same_list(merged, known)) {
    auto put = co_await agent_.store.put_bootstraps(std::move(merged), sent.timeout);
    if (!put) {
      agent_.env.log.info("storing the list of hubs failed, retrying", {{"error", put.error().describe()}});
      co_return false;
    }
    agent_.env.log.info("received a new list of hubs");
  }
  if (is_applied(work)) co_return true;
  const auto apply_time = agent_.options.work_apply_time;
  const kube::Mutation mutate = [this](object& target) { return put_applied(target, agent_.env.clock.wall_now()); };
  kube::EditOptions options;
  options.subresource = "status";
  kube::Result<kube::Object> written{work};
  if (apply_time > Duration{0}) {
    co_await agent_.env.clock.sleep_for(apply_time);
    options.attempts = 1;
    written = co_await kube::edit(*api_, ocm::manifest_works, work, mutate, options);
    if (!written && written.error().kind == kube::ErrorKind::conflict) {
      // A version that replaced it follows; one that is still there does not.
      auto latest = co_await api_->get(ocm::manifest_works, work.key());
      co_return latest && latest->resource_version() != work.resource_version();
    }
  } else {
    written = co_await kube::edit(*api_, ocm::manifest_works, work.key(), mutate, options);
  }
  // The hub waits for a sign of life of an agent that has applied it.
  if (written) beat_changed_.notify();
  co_return written || written.error().kind == kube::ErrorKind::not_found;
}

}  // namespace hubferry::klusterlet
