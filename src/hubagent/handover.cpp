#include "hubagent/handover.hpp"

#include <boost/json/serialize.hpp>

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// A watch on one work gives its place up for others after this long.
constexpr auto watch_turn = std::chrono::seconds{30};

Key work_key(const std::string& cluster) {
  return {cluster, cluster + "-klusterlet"};
}

/// Applied as it is now, not as it was before its last change.
bool is_applied_now(const Object& work) {
  const auto* applied = kube::find_condition(work, "Applied");
  if (applied == nullptr || kube::string_at(*applied, {"status"}) != "True") return false;
  const auto* observed = applied->if_contains("observedGeneration");
  return observed != nullptr && observed->is_int64() && observed->get_int64() == work.generation();
}

Awaitable<> follow_work(Hub& hub, MigrationRef migration, std::string cluster) {
  kube::CacheOptions options;
  options.ns = cluster;
  options.field_selector = "metadata.name=" + work_key(cluster).name;
  kube::Cache<Object> works{hub.api(), ocm::manifest_works, options, kube::object_decoder(), hub.env()};
  auto is_there = [&](const Object* work) { return knows_the_way(work, migration); };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(works.run());
    co_await works.wait_for(work_key(cluster), is_there, async::never);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
}

}  // namespace

bool knows_the_way(const Object* work, const MigrationRef& migration) {
  if (work == nullptr) return true;
  const auto* manifests = work->find({"spec", "workload"});
  if (manifests == nullptr ||
      json::serialize(*manifests).find("\"" + migration.bootstrap_secret() + "\"") == std::string::npos)
    return false;
  return is_applied_now(*work);
}

Awaitable<Result<bool>> has_the_way(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto work = co_await read_if_there(hub, ocm::manifest_works, work_key(cluster));
  if (!work) co_return work.error();
  co_return knows_the_way(*work ? &**work : nullptr, migration);
}

Awaitable<> await_the_way(Hub& hub, MigrationRef migration, std::string cluster) {
  auto& clock = hub.env().clock;
  while (true) {
    auto permit = co_await hub.small_watches().acquire();
    std::exception_ptr error;
    try {
      co_await async::with_deadline(clock, clock.now() + watch_turn, follow_work(hub, migration, cluster));
    } catch (...) {
      error = std::current_exception();
    }
    if (!error) co_return;
    if (!async::is_timeout(error)) std::rethrow_exception(error);
  }
}

}  // namespace hubferry::hubagent
