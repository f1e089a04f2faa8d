#include "hubferry/klusterlet/cluster_facts.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/projection.hpp"
#include "klusterlet/quantity.hpp"

namespace hubferry::klusterlet {

const kube::Resource cluster_claims{"cluster.open-cluster-management.io", "v1alpha1", "clusterclaims", "ClusterClaim",
                                    false};
const kube::Resource nodes{"", "v1", "nodes", "Node", false};

namespace {

using kube::json::array;
using kube::json::object;
using kube::json::value;

constexpr const char* spoke_only_label = "open-cluster-management.io/spoke-only";
constexpr std::array<std::string_view, 4> reserved_claims{"id.k8s.io", "kubeversion.open-cluster-management.io",
                                                          "platform.open-cluster-management.io",
                                                          "product.open-cluster-management.io"};
// Between two looks for the CRD of ClusterClaims; each is one small request.
constexpr auto crd_period = std::chrono::minutes{5};
constexpr auto first_wait = std::chrono::milliseconds{500};

struct ClaimView : kube::Projected {
  std::string text;
};

/// Nodes are large and change often (images, heartbeats): only this much of them is kept.
struct NodeView : kube::Projected {
  bool unschedulable = false;
  std::vector<std::pair<std::string, std::string>> capacity;
  std::vector<std::pair<std::string, std::string>> allocatable;

  [[nodiscard]] bool counts_as(const NodeView& other) const {
    return unschedulable == other.unschedulable && capacity == other.capacity && allocatable == other.allocatable;
  }
};

const kube::Decoder& claim_decoder() {
  static const kube::ProjectionDecoder<ClaimView> decoder{[] {
    kube::Schema<ClaimView> schema;
    schema.text({"spec", "value"}, &ClaimView::text);
    return schema;
  }()};
  return decoder;
}

const kube::Decoder& node_decoder() {
  static const kube::ProjectionDecoder<NodeView> decoder{[] {
    kube::Schema<NodeView> schema;
    schema.boolean({"spec", "unschedulable"}, &NodeView::unschedulable)
        .text_map({"status", "capacity"}, [](NodeView& to, std::string_view key,
                                             std::string_view text) { to.capacity.emplace_back(key, text); })
        .text_map({"status", "allocatable"}, [](NodeView& to, std::string_view key, std::string_view text) {
          to.allocatable.emplace_back(key, text);
        });
    return schema;
  }()};
  return decoder;
}

using Sums = std::map<std::string, Quantity>;

void add_to(Sums& sums, const std::vector<std::pair<std::string, std::string>>& quantities) {
  for (const auto& [name, text] : quantities)
    if (const auto quantity = Quantity::parse(text)) sums[name].add(*quantity);
}

ClusterFacts::Quantities texts_of(const Sums& sums) {
  ClusterFacts::Quantities texts;
  for (const auto& [name, quantity] : sums) texts.emplace(name, quantity.text());
  return texts;
}

object json_of(const ClusterFacts::Quantities& quantities) {
  object all;
  for (const auto& [name, text] : quantities) all.emplace(name, text);
  return all;
}

bool replace(object& status, std::string_view name, value wanted) {
  auto& field = status[name];
  if (field == wanted) return false;
  field = std::move(wanted);
  return true;
}

kube::CacheOptions without_spoke_only() {
  kube::CacheOptions options;
  options.label_selector = std::string{"!"} + spoke_only_label;
  return options;
}

}  // namespace

bool ClusterFacts::put_into(object& status) const {
  bool changed = false;
  if (claims) {
    array all;
    for (const auto& [name, text] : *claims) all.push_back(object{{"name", name}, {"value", text}});
    const auto* known = status.if_contains("clusterClaims");
    // No claims, and never any: nothing to write.
    if (known != nullptr || !all.empty()) changed = replace(status, "clusterClaims", std::move(all));
  }
  if (!resources) return changed;
  auto capacity = json_of(resources->capacity);
  if (const auto* known = status.if_contains("capacity"); known != nullptr && known->is_object())
    for (const auto& [name, quantity] : known->get_object())
      if (!capacity.contains(name)) capacity.emplace(name, quantity);
  changed = replace(status, "capacity", std::move(capacity)) || changed;
  return replace(status, "allocatable", json_of(resources->allocatable)) || changed;
}

class ClusterFactsWatch::Caches {
 public:
  Caches(kube::Api& api, const kube::Env& env)
      : claims(api, cluster_claims, without_spoke_only(), claim_decoder(), env),
        nodes(api, klusterlet::nodes, {}, node_decoder(), env) {}

  kube::Cache<ClaimView> claims;
  kube::Cache<NodeView> nodes;
  bool claims_absent = false;  // the CRD is not installed
  async::Notify changed;
};

ClusterFactsWatch::ClusterFactsWatch(kube::Api& own_cluster, ClusterFactsOptions options, kube::Env env)
    : api_(own_cluster),
      options_(std::move(options)),
      env_(std::move(env)),
      caches_(std::make_unique<Caches>(api_, env_)) {}

ClusterFactsWatch::~ClusterFactsWatch() = default;

Awaitable<> ClusterFactsWatch::run() {
  auto all = [this](async::TaskScope& scope) -> Awaitable<> {
    auto& changed = caches_->changed;
    const auto of_claims = caches_->claims.subscribe([&](const auto&, const auto&, const auto&) { changed.notify(); });
    const auto of_nodes = caches_->nodes.subscribe([&](const kube::Key&, const auto& old, const auto& now) {
      // Most updates of a Node are heartbeats.
      if (old == nullptr || now == nullptr || !old->counts_as(*now)) changed.notify();
    });
    const auto announce = [](auto& cache, async::Notify& notify) -> Awaitable<> {
      co_await cache.wait_synced();
      notify.notify();
    };
    scope.spawn(follow_claims());
    scope.spawn(caches_->nodes.run());
    scope.spawn(announce(caches_->claims, changed));
    scope.spawn(announce(caches_->nodes, changed));
    co_await publish();
  };
  co_await async::with_scope(all);
}

Awaitable<> ClusterFactsWatch::follow_claims() {
  async::Backoff backoff{{}, env_.clock, env_.random};
  while (true) {
    auto served = co_await api_.serves(cluster_claims);
    if (served && *served) break;
    if (!served) {
      co_await backoff.pause();
      continue;
    }
    if (!caches_->claims_absent)
      env_.log.info("the CRD of ClusterClaims is not installed on this cluster: no claims are reported",
                    {{"resource", cluster_claims.display_name()}});
    caches_->claims_absent = true;
    caches_->changed.notify();
    co_await env_.clock.sleep_for(crd_period);
  }
  caches_->claims_absent = false;
  co_await caches_->claims.run();
}

Awaitable<> ClusterFactsWatch::publish() {
  while (true) {
    co_await caches_->changed.wait();
    // At the start claims and nodes arrive one after the other: one report.
    if (version_ == 0) co_await env_.clock.sleep_for(first_wait);
    ClusterFacts now;
    if (caches_->claims.synced()) now.claims = claims_to_report();
    if (caches_->claims_absent) now.claims.emplace();
    if (caches_->nodes.synced()) now.resources = sum_of_nodes();
    if (now == facts_) continue;
    facts_ = std::move(now);
    ++version_;
    waiters_.wake_all();
    co_await env_.clock.sleep_for(options_.settle);
  }
}

std::vector<ClusterFacts::Claim> ClusterFactsWatch::claims_to_report() {
  std::vector<ClusterFacts::Claim> reserved;
  std::vector<ClusterFacts::Claim> custom;
  const auto is_reserved = [this](const std::string& name) {
    return std::ranges::find(reserved_claims, name) != reserved_claims.end() ||
           std::ranges::any_of(options_.reserved_suffixes,
                               [&](const std::string& suffix) { return name.ends_with(suffix); });
  };
  caches_->claims.for_each([&](const kube::Key& key, const auto& claim) {
    (is_reserved(key.name) ? reserved : custom).emplace_back(key.name, claim->text);
  });
  std::ranges::sort(reserved);
  std::ranges::sort(custom);
  const auto left_out = custom.size() - std::min(custom.size(), options_.most_custom_claims);
  if (left_out > 0 && left_out != left_out_)
    env_.log.warn(
        "more ClusterClaims than are reported",
        {{"event", "CustomClusterClaimsTruncated"}, {"reported", options_.most_custom_claims}, {"left_out", left_out}});
  left_out_ = left_out;
  custom.resize(custom.size() - left_out);
  reserved.insert(reserved.end(), custom.begin(), custom.end());
  return reserved;
}

ClusterFacts::Resources ClusterFactsWatch::sum_of_nodes() const {
  Sums capacity;
  Sums allocatable;
  // In the order of names: the notation of a sum is that of its first quantity, and must not change with a hash.
  std::map<std::string, std::shared_ptr<const NodeView>> sorted;
  caches_->nodes.for_each([&](const kube::Key& key, const auto& node) { sorted.emplace(key.name, node); });
  for (const auto& [name, node] : sorted) {
    add_to(capacity, node->capacity);
    if (!node->unschedulable) add_to(allocatable, node->allocatable);
  }
  return {texts_of(capacity), texts_of(allocatable)};
}

Awaitable<> ClusterFactsWatch::wait_for_change(std::uint64_t seen) {
  while (version_ == seen) co_await waiters_.wait();
}

}  // namespace hubferry::klusterlet
