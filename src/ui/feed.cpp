#include "hubferry/ui/feed.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::ui {

using namespace std::chrono_literals;

namespace {

// A rollback writes the ledger after every batch: a person does not see more than this.
constexpr auto pause_between_reads = 1s;

kube::CacheOptions in_namespace(std::string ns) {
  kube::CacheOptions options;
  options.ns = std::move(ns);
  return options;
}

/// Changes when the ledger was written: every phase writes it before its status.
std::string ledger_mark(const kube::Object& migration) {
  const auto status = migration::read_status(migration);
  std::string mark{migration.uid()};
  mark += ' ' + status.phase;
  for (const auto count : {status.clusters.total, status.clusters.failed, status.clusters.rolled_back})
    mark += ' ' + std::to_string(count);
  // A pending rollback or cleanup says here what it waits for.
  if (const auto* latest = status.latest_condition(); latest != nullptr && status.is_cleanup_pending())
    mark += ' ' + latest->message;
  return mark;
}

}  // namespace

Feed::Feed(kube::Api& global, Console& console, std::string watch_namespace, kube::Env env)
    : global_(global),
      console_(console),
      env_{env.clock, env.random, env.metrics, env.log.named("ui")},
      migrations_(global, migration::managed_cluster_migrations, in_namespace(std::move(watch_namespace)),
                  kube::object_decoder(), env_) {}

async::Awaitable<> Feed::run() {
  const auto subscription = migrations_.subscribe(
      [this](const kube::Key& key, const auto&, const auto& now) { changed(key, now); }, kube::Replay::existing);
  auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(read_ledgers());
    co_await migrations_.run();
  };
  co_await async::with_scope(body);
}

void Feed::changed(const kube::Key& key, const std::shared_ptr<const kube::Object>& now) {
  if (now == nullptr) {
    known_.erase(key);
    to_read_.erase(key);
    console_.remove(key);
    return;
  }
  console_.put(now);
  auto mark = ledger_mark(*now);
  if (known_[key] == mark) return;
  known_[key] = std::move(mark);
  to_read_.insert(key);
  more_to_read_.notify();
}

async::Awaitable<> Feed::read_ledgers() {
  for (;;) {
    while (to_read_.empty()) co_await more_to_read_.wait();
    const auto keys = std::exchange(to_read_, {});
    for (const auto& key : keys) {
      const bool done = co_await read_ledger(key);
      if (!done && known_.contains(key)) to_read_.insert(key);
    }
    co_await env_.clock.sleep_for(pause_between_reads);
  }
}

/// False: it has to be read again.
async::Awaitable<bool> Feed::read_ledger(kube::Key key) {
  const auto ledger = co_await global_.get(kube::resources::config_maps, key);
  if (!ledger) {
    const bool again = kube::is_transient(ledger.error().kind);
    if (ledger.error().kind != kube::ErrorKind::not_found)
      env_.log.warn("cannot read the ledger for the page",
                    {{"migration", kube::to_string(key)}, {"error", ledger.error().describe()}, {"retried", again}});
    co_return !again;
  }
  const auto migration = migrations_.get(key);
  // Another ConfigMap of that name, or the ledger of a deleted migration.
  if (migration == nullptr || ledger->label(hubagent::migration_label) != migration->uid()) co_return true;
  console_.put_clusters(key, std::string{migration->uid()}, migration::read_clusters(*ledger));
  co_return true;
}

}  // namespace hubferry::ui
