// Backups by schedule.
#include <algorithm>

#include "mysql/cron.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

/// "202605170300": sorts by time.
std::string compact(async::WallTime time) {
  std::string digits;
  for (const char c : async::format_time(time))
    if (c >= '0' && c <= '9') digits += c;
  return digits.substr(0, 12);
}

}  // namespace

/// Creates the MySQLBackup that is due. Of several that were missed the last one counts; while one runs, none begins.
Awaitable<> Pass::schedule_backups() {
  if (spec_.backup_schedule.empty()) {
    kube::remove_condition(cluster_.status, conditions::backups_on_time);
    // One that is set later is a new schedule: it has missed nothing.
    cluster_.status.erase("lastBackupScheduleTime");
    co_return;
  }
  const auto schedule = CronSchedule::parse(spec_.backup_schedule);
  if (!schedule) {
    constexpr const char* problem = "spec.backupSchedule.schedule is not a cron expression: no backup is made";
    cluster_.status.erase("lastBackupScheduleTime");
    warn(reasons::schedule_invalid, problem);
    set(conditions::backups_on_time, ConditionStatus::no, reasons::schedule_invalid, problem);
    co_return;
  }
  report_overdue(*schedule);
  if (phase_ != phases::running) co_return;  // it would be refused
  const auto now = services_.env.clock.wall_now();
  const auto last = kube::string_at(cluster_.status, {"lastBackupScheduleTime"});
  if (last.empty()) {
    // Counts from now: a new schedule has missed nothing.
    cluster_.status["lastBackupScheduleTime"] = async::format_time(now);
    co_return;
  }
  const auto due = schedule->last_between(time_of(std::string{last}, now), now);
  if (!due) co_return;
  bool is_running = false;
  services_.backups->for_each([&](const kube::Key& key, const ObjectCache::Pointer& backup) {
    const auto phase = backup->string_at({"status", "phase"});
    is_running = is_running || (key.ns == owner_.ns && backup->string_at({"spec", "cluster"}) == owner_.name &&
                                phase != phases::succeeded && phase != phases::failed);
  });
  if (is_running) co_return;
  json::object backup{{"metadata", json::object{{"name", owner_.name + "-" + compact(*due)},
                                                {"namespace", owner_.ns},
                                                {"labels", labels_of(owner_)}}},
                      {"spec", json::object{{"cluster", owner_.name},
                                            {"keep", spec_.backup_keep},
                                            {"storage", json::object{{"claimName", spec_.backup_claim}}}}}};
  auto made = co_await services_.api.create(mysql_backups, std::move(backup));
  if (!made && made.error().kind != kube::ErrorKind::already_exists) take(std::move(made), "scheduled backup");
  cluster_.status["lastBackupScheduleTime"] = async::format_time(*due);
}

/// Counts from the last success or, before the first, from when the schedule was first seen.
void Pass::report_overdue(const CronSchedule& schedule) {
  const auto now = services_.env.clock.wall_now();
  const auto* condition = kube::find_condition_in_status(cluster_.status, conditions::backups_on_time);
  // One that was no schedule before has missed nothing either.
  const bool is_new = condition == nullptr || kube::string_at(*condition, {"reason"}) == reasons::schedule_invalid;
  auto last = std::string{kube::string_at(cluster_.status, {"lastSuccessfulBackupTime"})};
  services_.backups->for_each([&](const kube::Key& key, const ObjectCache::Pointer& backup) {
    if (key.ns != owner_.ns || backup->string_at({"spec", "cluster"}) != owner_.name) return;
    if (backup->string_at({"status", "phase"}) != phases::succeeded) return;
    // All have the same format, so they compare as text. The MySQLBackup may be deleted later.
    if (const std::string started{backup->string_at({"status", "startTime"})}; started > last) last = started;
  });
  if (!last.empty()) cluster_.status["lastSuccessfulBackupTime"] = last;
  auto since = time_of(last, async::WallTime{});
  if (!is_new && kube::string_at(*condition, {"status"}) == "True")
    since = std::max(since, time_of(std::string{kube::string_at(*condition, {"lastTransitionTime"})}, now));
  const auto missed = schedule.next(since);
  const auto after = missed ? schedule.next(*missed) : std::nullopt;
  if (!is_new && after && *after <= now)
    set(conditions::backups_on_time, ConditionStatus::no, reasons::backup_overdue,
        "no backup has succeeded since " + (last.empty() ? "the schedule began" : last));
  else
    set(conditions::backups_on_time, ConditionStatus::yes, reasons::backup_on_time, "backups succeed as scheduled");
}

}  // namespace hubferry::mysql
