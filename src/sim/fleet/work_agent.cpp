#include "hubferry/sim/work_agent.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/fleet/work_manifest.hpp"
#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

namespace json = kube::json;
using async::Awaitable;
using kube::Key;
using kube::Object;

namespace {

kube::CacheOptions works_of(const std::string& cluster) {
  kube::CacheOptions options;
  options.ns = cluster;
  return options;
}

kube::WorkQueueOptions queue_options(const std::string& cluster) {
  kube::WorkQueueOptions options;
  options.name = cluster + "/work-agent";
  options.controller = "work-agent";
  options.most_delay = std::chrono::seconds{30};
  return options;
}

/// When the eviction of this AppliedManifestWork began; nothing: it has not.
std::optional<async::WallTime> eviction_start(const Object& applied) {
  const auto text = applied.string_at({"status", "evictionStartTime"});
  if (text.empty()) return std::nullopt;
  return async::parse_time(text);
}

}  // namespace

/// The time with one hub.
class WorkAgent::Session {
 public:
  explicit Session(WorkAgent& agent)
      : own_cluster_(agent.own_cluster_),
        options_(agent.options_),
        env_(agent.env_),
        hub_(agent.hub_),
        hub_hash_(name_of_hub(agent.server_)),
        works_(*hub_, ocm::manifest_works, works_of(options_.cluster), kube::object_decoder(), env_),
        queue_(queue_options(options_.cluster), env_) {}

  Awaitable<> run() {
    auto subscription = works_.subscribe([this](const Key& key, const auto&, const auto&) {
      queue_.add(key);
      ++works_version_;
      works_changed_.wake_all();
    });
    auto body = [this](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(works_.run());
      scope.spawn(queue_.run());
      co_await works_.wait_synced();
      scope.spawn(apply_works());
      scope.spawn(evict());
    };
    co_await async::with_scope(body);
  }

 private:
  Awaitable<> apply_works() {
    while (auto key = co_await queue_.get()) {
      auto done = co_await reconcile(*key);
      if (done)
        queue_.forget(*key);
      else
        queue_.add_rate_limited(*key);
      queue_.done(*key);
    }
  }

  [[nodiscard]] Key applied_key(const std::string& work) const { return {{}, hub_hash_ + "-" + work}; }

  Awaitable<kube::Result<>> reconcile(Key key) {
    const auto work = works_.get(key);
    if (work == nullptr) co_return kube::Result<>{};
    if (work->is_being_deleted()) {
      // Its objects go with it, unless another work owns them too: the garbage collector's rule.
      auto gone = co_await ensure_gone(own_cluster_, ocm::applied_manifest_works, applied_key(key.name));
      if (!gone) co_return gone.error();
      auto freed = co_await kube::remove_finalizer(*hub_, ocm::manifest_works, key, ocm::names::work_cleanup_finalizer);
      if (!freed) co_return freed.error();
      co_return kube::Result<>{};
    }
    if (!kube::has_finalizer(*work, ocm::names::work_cleanup_finalizer)) {
      auto held = co_await kube::add_finalizer(*hub_, ocm::manifest_works, key, ocm::names::work_cleanup_finalizer);
      if (!held) co_return held.error();
    }
    auto owner = co_await claim(key.name);
    if (!owner) co_return owner.error();
    auto applied = co_await apply_all(*work, *owner);
    // The klusterlet's own work is reported by the agent that it configures.
    if (!applied || key.name == options_.cluster + "-klusterlet") co_return applied;
    co_return co_await report(*work);
  }

  /// The AppliedManifestWork of this work; not evicted any more.
  Awaitable<kube::Result<Object>> claim(std::string work) {
    json::object wanted{
        {"metadata", json::object{{"name", applied_key(work).name}}},
        {"spec", json::object{{"hubHash", hub_hash_}, {"agentID", options_.cluster}, {"manifestWorkName", work}}}};
    auto written = co_await ensure(own_cluster_, ocm::applied_manifest_works, std::move(wanted));
    if (!written) co_return written.error();
    if (!eviction_start(written->object)) co_return written->object;
    json::object patch{{"status", json::object{{"evictionStartTime", nullptr}}}};
    co_return co_await own_cluster_.merge_patch(ocm::applied_manifest_works, written->object.key(), std::move(patch),
                                                "status");
  }

  Awaitable<kube::Result<>> apply_all(Object work, Object owner) {
    for (const auto& manifest : manifests_of(work)) {
      auto wanted = std::make_shared<json::object>(manifest.object);
      const bool owned = !manifest.orphaned;
      if (manifest.read_only) continue;
      const bool keeps = manifest.create_only;
      kube::Mutation mutate = [wanted, owned, owner, keeps](json::object& object) {
        const bool exists = !kube::string_at(object, {"metadata", "uid"}).empty();
        const bool owners_changed = set_applied_owner(object, owner, owned);
        if (exists && keeps) return owners_changed;
        return put_manifest(object, *wanted) || owners_changed;
      };
      auto written = co_await kube::create_or_patch(own_cluster_, manifest.resource, Object{*wanted}.key(), mutate);
      if (!written) co_return written.error();
    }
    co_return kube::Result<>{};
  }

  Awaitable<kube::Result<>> report(Object work) {
    const auto now = env_.clock.wall_now();
    const kube::Condition applied{.type = "Applied",
                                  .status = kube::ConditionStatus::yes,
                                  .reason = "AppliedManifestWorkComplete",
                                  .message = "Apply manifest work complete",
                                  .observed_generation = work.generation()};
    kube::Mutation mutate = [&](json::object& object) {
      return kube::set_condition(kube::object_in(object, "status"), applied, now);
    };
    kube::EditOptions how;
    how.subresource = "status";
    auto written = co_await kube::edit(*hub_, ocm::manifest_works, work, mutate, how);
    if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
    co_return kube::Result<>{};
  }

  [[nodiscard]] bool is_managed(const Object& applied) const {
    return applied.string_at({"spec", "hubHash"}) == hub_hash_ &&
           works_.get({options_.cluster, std::string{applied.string_at({"spec", "manifestWorkName"})}}) != nullptr;
  }

  Awaitable<> evict() {
    while (true) {
      const auto seen = works_version_;
      auto next = async::never;
      const kube::ListOptions everything;
      auto all = co_await own_cluster_.list_all(ocm::applied_manifest_works, everything);
      if (!all) next = env_.clock.now() + std::chrono::seconds{10};
      const std::vector<Object> applied = all ? std::move(*all) : std::vector<Object>{};
      for (const auto& one : applied) {
        if (is_managed(one)) continue;
        auto due = co_await evict_when_due(one);
        next = std::min(next, due);
      }
      (void)co_await async::before_deadline(env_.clock, next, wait_for_works(seen));
    }
  }

  Awaitable<> wait_for_works(std::uint64_t seen) {
    while (works_version_ == seen) co_await works_changed_.wait();
  }

  /// Starts or completes the eviction; returns when to look again.
  Awaitable<async::TimePoint> evict_when_due(Object applied) {
    const auto now = env_.clock.wall_now();
    const auto started = eviction_start(applied);
    if (started && now >= *started + options_.eviction_grace) {
      (void)co_await ensure_gone(own_cluster_, ocm::applied_manifest_works, applied.key());
      co_return async::never;
    }
    if (!started) {
      json::object patch{{"status", json::object{{"evictionStartTime", async::format_time(now)}}}};
      (void)co_await own_cluster_.merge_patch(ocm::applied_manifest_works, applied.key(), std::move(patch), "status");
    }
    // Written in whole seconds.
    const auto left = started ? *started + options_.eviction_grace - now : options_.eviction_grace;
    co_return async::later(env_.clock.now(), left + std::chrono::seconds{1});
  }

  kube::Api& own_cluster_;
  const WorkAgentOptions& options_;
  const kube::Env& env_;
  std::shared_ptr<kube::Api> hub_;
  std::string hub_hash_;
  kube::Cache<Object> works_;
  kube::WorkQueue queue_;
  std::uint64_t works_version_ = 0;
  async::WaitList works_changed_;
};

WorkAgent::WorkAgent(kube::Api& own_cluster, WorkAgentOptions options, kube::Env env)
    : own_cluster_(own_cluster), options_(std::move(options)), env_(std::move(env)) {}

WorkAgent::~WorkAgent() = default;

void WorkAgent::set_hub(std::string server, std::shared_ptr<kube::Api> hub) {
  server_ = std::move(server);
  hub_ = std::move(hub);
  ++version_;
  changed_.wake_all();
}

Awaitable<> WorkAgent::run() {
  while (true) {
    const auto seen = version_;
    if (hub_ == nullptr) {
      co_await changed_.wait();
      continue;
    }
    Session session{*this};
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(session.run());
      while (version_ == seen) co_await changed_.wait();
      scope.stop();
    };
    co_await async::with_scope(body);
  }
}

}  // namespace hubferry::sim
