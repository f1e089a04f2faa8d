// Backups by schedule.
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
  if (spec_.backup_schedule.empty()) co_return;
  const auto schedule = CronSchedule::parse(spec_.backup_schedule);
  if (!schedule) {
    warn("BackupScheduleInvalid", "spec.backupSchedule.schedule is not a cron expression");
    co_return;
  }
  const auto now = services_.env.clock.wall_now();
  const auto last = kube::string_at(cluster_.status, {"lastBackupScheduleTime"});
  if (last.empty()) {
    // Counts from now: a new schedule has missed nothing.
    cluster_.status["lastBackupScheduleTime"] = async::format_time(now);
    co_return;
  }
  std::optional<async::WallTime> due;
  for (auto next = schedule->next(async::parse_time(last)); next && *next <= now; next = schedule->next(*next))
    due = next;
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

}  // namespace hubferry::mysql
