#include <boost/json/serialize.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "hubferry/sim/workloads.hpp"

namespace hubferry::sim {

namespace {

namespace json = boost::json;
using kube::Awaitable;
using kube::Key;
using kube::Object;
using SetCache = kube::Cache<Object>;

const kube::Resource stateful_sets{"apps", "v1", "statefulsets", "StatefulSet", true};
const kube::Resource set_pods{"", "v1", "pods", "Pod", true};
const kube::Resource set_claims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};

std::int64_t wanted_replicas(const Object& set) {
  const auto* value = set.find({"spec", "replicas"});
  return value != nullptr && value->is_number() ? value->to_number<std::int64_t>() : 1;
}

/// The same for the same template.
std::string revision_of(const Object& set) {
  const auto* pod_template = set.find({"spec", "template"});
  std::uint64_t hash = 1469598103934665603ULL;
  for (const unsigned char c : json::serialize(*pod_template)) hash = (hash ^ c) * 1099511628211ULL;
  return std::string{set.name()} + "-" + std::to_string(hash % 1'000'000'000);
}

std::string ordinal_name(const Object& set, std::int64_t ordinal) {
  return std::string{set.name()} + "-" + std::to_string(ordinal);
}

}  // namespace

class StatefulSets::State {
 public:
  State(kube::Api& api, StatefulSetOptions options, kube::Env env)
      : api_(api),
        options_(std::move(options)),
        env_(std::move(env)),
        sets_(api, stateful_sets, {}, kube::object_decoder(), env_),
        pods_(api, set_pods, {}, kube::object_decoder(), env_),
        queue_({.name = "statefulset", .controller = {}}, env_) {}

  Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(sets_.run());
      scope.spawn(pods_.run());
      scope.spawn(queue_.run());
      co_await sets_.wait_synced();
      co_await pods_.wait_synced();
      const auto sets = sets_.subscribe([this](const Key& key, const auto&, const auto&) { queue_.add(key); },
                                        kube::Replay::existing);
      const auto pods = pods_.subscribe([this](const Key& key, const auto& old, const auto& now) {
        const auto& pod = now != nullptr ? now : old;
        if (const auto name = pod->name(); name.rfind('-') != std::string_view::npos)
          queue_.add({key.ns, std::string{name.substr(0, name.rfind('-'))}});
      });
      while (auto key = co_await queue_.get()) {
        const bool done = co_await reconcile(*key);
        if (done)
          queue_.forget(*key);
        else
          queue_.add_rate_limited(*key);
        queue_.done(*key);
      }
    };
    co_await async::with_scope(body);
  }

 private:
  Awaitable<bool> reconcile(Key key) {
    const auto set = sets_.get(key);
    if (set == nullptr || set->is_being_deleted()) co_return true;
    const auto replicas = wanted_replicas(*set);
    std::int64_t ready = 0;
    std::int64_t present = 0;
    for (std::int64_t ordinal = 0;; ++ordinal) {
      const Key pod_key{key.ns, ordinal_name(*set, ordinal)};
      const auto pod = pods_.get(pod_key);
      if (pod == nullptr && ordinal >= replicas) break;
      if (ordinal >= replicas) {
        auto removed = co_await api_.remove(set_pods, pod_key);
        if (!removed && removed.error().kind != kube::ErrorKind::not_found) co_return false;
        continue;
      }
      ++present;
      if (pod == nullptr) {
        if (!co_await create(*set, ordinal)) co_return false;
        continue;
      }
      if (kube::is_condition_true(*pod, "Ready")) {
        ++ready;
      } else if (options_.start_delay && !co_await start(key, *pod)) {
        co_return false;
      }
    }
    co_return co_await report(*set, present, ready);
  }

  Awaitable<bool> create(Object set, std::int64_t ordinal) {
    const auto name = ordinal_name(set, ordinal);
    const std::string ns{set.ns()};
    json::object labels;
    if (const auto* given = set.find({"spec", "selector", "matchLabels"}); given != nullptr && given->is_object())
      labels = given->get_object();
    if (const auto* templates = set.find({"spec", "volumeClaimTemplates"});
        templates != nullptr && templates->is_array())
      for (const auto& claim : templates->get_array()) {
        const auto claim_key = std::string{kube::string_at(claim.get_object(), {"metadata", "name"})} + "-" + name;
        json::object made{{"metadata", json::object{{"name", claim_key}, {"namespace", ns}, {"labels", labels}}},
                          {"spec", claim.get_object().at("spec")}};
        auto written = co_await api_.create(set_claims, std::move(made));
        if (!written && written.error().kind != kube::ErrorKind::already_exists) co_return false;
      }
    json::object pod = set.find({"spec", "template"})->get_object();
    auto& metadata = kube::object_in(pod, "metadata");
    metadata["name"] = name;
    metadata["namespace"] = ns;
    auto& pod_labels = kube::object_in(metadata, "labels");
    pod_labels["controller-revision-hash"] = revision_of(set);
    pod_labels["statefulset.kubernetes.io/pod-name"] = name;
    pod["status"] = json::object{{"phase", "Pending"}};
    if (auto owned = kube::set_owner(pod, stateful_sets, set); !owned) co_return false;
    auto written = co_await api_.create(set_pods, std::move(pod));
    co_return written || written.error().kind == kube::ErrorKind::already_exists;
  }

  /// True also while it is not yet time: the set is reconciled again then.
  Awaitable<bool> start(Key set, Object pod) {
    const auto made = async::parse_time(pod.string_at({"metadata", "creationTimestamp"}));
    const auto left = made + *options_.start_delay - env_.clock.wall_now();
    if (left > async::Duration::zero()) {
      queue_.add_after(set, left);
      co_return true;
    }
    const auto address = options_.address ? options_.address(pod) : next_address();
    const auto now = env_.clock.wall_now();
    kube::Mutation mutate = [&](json::object& object) {
      auto& status = kube::object_in(object, "status");
      status["phase"] = "Running";
      status["podIP"] = address;
      kube::set_condition(status, {"Ready", kube::ConditionStatus::yes, "Started", "", 0}, now);
      return true;
    };
    kube::EditOptions how;
    how.subresource = "status";
    auto written = co_await kube::edit(api_, set_pods, pod, std::move(mutate), how);
    co_return written || written.error().kind == kube::ErrorKind::not_found;
  }

  std::string next_address() {
    const auto number = ++addresses_;
    return "10." + std::to_string(number >> 16 & 255) + "." + std::to_string(number >> 8 & 255) + "." +
           std::to_string(number & 255);
  }

  Awaitable<bool> report(Object set, std::int64_t present, std::int64_t ready) {
    json::object status{{"replicas", present},
                        {"readyReplicas", ready},
                        {"updateRevision", revision_of(set)},
                        {"observedGeneration", set.generation()}};
    kube::Mutation mutate = [&](json::object& object) {
      auto& there = object["status"];
      if (there.is_object() && kube::contains_fields(there, status)) return false;
      there = status;
      return true;
    };
    kube::EditOptions how;
    how.subresource = "status";
    auto written = co_await kube::edit(api_, stateful_sets, set, std::move(mutate), how);
    co_return written || written.error().kind == kube::ErrorKind::not_found;
  }

  kube::Api& api_;
  StatefulSetOptions options_;
  kube::Env env_;
  SetCache sets_;
  SetCache pods_;
  kube::WorkQueue queue_;
  unsigned addresses_ = 0;
};

StatefulSets::StatefulSets(kube::Api& api, StatefulSetOptions options, kube::Env env)
    : state_(std::make_unique<State>(api, std::move(options), std::move(env))) {}

StatefulSets::~StatefulSets() = default;

Awaitable<> StatefulSets::run() {
  return state_->run();
}

}  // namespace hubferry::sim
