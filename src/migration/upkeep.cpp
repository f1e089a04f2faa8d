#include "migration/upkeep.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/edit.hpp"
#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

// After a write that failed.
constexpr auto pause_after_error = std::chrono::minutes{1};

}  // namespace

std::optional<std::string> find_request_problem(const Migration& migration) {
  const auto request = migration.object.annotation(names::request_annotation);
  if (request.empty() || migration.is_being_deleted()) return std::nullopt;
  const auto phase = migration.phase();
  const auto problem = [&](std::string_view why) {
    return std::string{names::request_annotation} + ": " + phase::shortened(request, 100) +
           " is not granted: " + std::string{why};
  };
  if (request != names::rollback_request) return problem("the only request there is is 'rollback'");
  if (phase == phases::failed || phase == phases::rollbacking || phase == phases::cleaning ||
      wants_to_resume(migration))
    return std::nullopt;
  if (phase == phases::completed)
    return problem("the clusters have arrived; to move them back, create a migration in the other direction");
  return problem("the migration runs; delete it to cancel it and to roll it back");
}

std::optional<WallTime> find_expiry(const Migration& migration) {
  if (!is_terminal(migration.phase()) || migration.is_being_deleted() || wants_to_resume(migration))
    return std::nullopt;
  // What was left behind may be clusters that no hub accepts: their record stays until a person deletes it.
  for (const auto* type : {conditions::cleaned, conditions::rolled_back})
    if (condition_reason(migration, type) == reasons::left_behind) return std::nullopt;
  const auto kept = migration.spec().time_to_live;
  const auto ended = time_in(migration.status, status_fields::completed);
  if (!kept || !ended) return std::nullopt;
  return *ended + *kept;
}

bool has_outdated_summary(const Migration& migration) {
  if (!is_terminal(migration.phase()) || migration.is_being_deleted() || wants_to_resume(migration)) return false;
  const auto* ready = kube::find_condition_in_status(migration.status, conditions::ready);
  // One that ended under an earlier version has no summary.
  const auto* observed = ready == nullptr ? nullptr : ready->if_contains("observedGeneration");
  return observed != nullptr && observed->is_number() &&
         observed->to_number<std::int64_t>() != migration.object.generation();
}

void Upkeep::see(const Migration* old, const Migration& migration) {
  // At the start of a manager not again: what was changed has its event, and its condition.
  if (old != nullptr && old->object.generation() != migration.object.generation() && migration.is_spec_changed())
    reporter_.warn(migration, reasons::change_ignored, "Migrate", spec_change_message);
  auto due = find_expiry(migration);
  if (find_request_problem(migration) || has_outdated_summary(migration)) due = env_.clock.wall_now();
  const auto key = migration.object.key();
  if (!due) return forget(key);
  tasks_.insert_or_assign(key, Task{migration, *due});
  changed_.notify();
}

void Upkeep::forget(const kube::Key& key) {
  tasks_.erase(key);
}

std::optional<kube::Key> Upkeep::next() const {
  const auto first = std::ranges::min_element(
      tasks_, [](const auto& one, const auto& other) { return one.second.due < other.second.due; });
  return first == tasks_.end() ? std::nullopt : std::optional{first->first};
}

async::Awaitable<> Upkeep::run() {
  for (;;) {
    const auto key = next();
    const auto wait = key ? tasks_.at(*key).due - env_.clock.wall_now() : Duration::max();
    if (key && wait <= Duration::zero()) {
      co_await perform(*key);
      continue;
    }
    // Not for longer than a while: the wall clock may be set.
    const auto until =
        key ? async::later(env_.clock.now(), std::min<Duration>(wait, std::chrono::minutes{1})) : async::never;
    co_await async::before_deadline(env_.clock, until, changed_.wait());
  }
}

async::Awaitable<> Upkeep::perform(kube::Key key) {
  const auto migration = std::move(tasks_.extract(key).mapped().migration);
  const auto problem = find_request_problem(migration);
  const bool is_outdated = !problem && has_outdated_summary(migration);
  auto done = problem       ? co_await refuse_request(migration, *problem)
              : is_outdated ? co_await observe(migration)
                            : co_await remove(migration);
  if (done || done.error().kind == kube::ErrorKind::not_found || done.error().kind == kube::ErrorKind::conflict)
    co_return;
  env_.log.warn(problem       ? "cannot remove a request that is not granted, retrying"
                : is_outdated ? "cannot update the conditions of an ended migration, retrying"
                              : "cannot delete an ended migration",
                {{"migration", kube::to_string(key)}, {"error", done.error().describe()}});
  // Unless a newer version has come meanwhile.
  tasks_.try_emplace(key, Task{migration, env_.clock.wall_now() + pause_after_error});
}

async::Awaitable<kube::Result<>> Upkeep::refuse_request(Migration migration, std::string problem) {
  json::object changed = migration.object.json();
  kube::object_in(kube::object_in(changed, "metadata"), "annotations").erase(names::request_annotation);
  auto written = co_await api_.update(managed_cluster_migrations, std::move(changed));
  if (!written) co_return written.error();
  reporter_.warn(migration, "RequestRefused", "Migrate", problem);
  env_.log.info("request refused", {{"migration", kube::to_string(migration.object.key())}, {"problem", problem}});
  co_return kube::Result<>{};
}

async::Awaitable<kube::Result<>> Upkeep::remove(Migration migration) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = managed_cluster_migrations;
  request.key = migration.object.key();
  request.precondition_uid = migration.object.uid();
  request.precondition_resource_version = migration.object.resource_version();
  auto removed = co_await api_.call(std::move(request));
  if (!removed) co_return removed.error();
  env_.log.info("ended migration deleted, its time to live is over",
                {{"migration", kube::to_string(migration.object.key())}});
  co_return kube::Result<>{};
}

/// A later version comes by the cache, with what else is to be done.
async::Awaitable<kube::Result<>> Upkeep::observe(Migration migration) {
  put_summary(migration, env_.clock.wall_now());
  json::object status{{"observedGeneration", migration.object.generation()},
                      {"conditions", migration.status["conditions"]}};
  json::object patch{{"metadata", json::object{{"resourceVersion", migration.object.resource_version()}}},
                     {"status", std::move(status)}};
  auto written =
      co_await api_.merge_patch(managed_cluster_migrations, migration.object.key(), std::move(patch), "status");
  if (!written) co_return written.error();
  co_return kube::Result<>{};
}

}  // namespace hubferry::migration
