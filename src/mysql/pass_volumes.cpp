// How much space the volumes have left. A server whose volume is full hangs or crashes, and its replicas soon after it:
// a failover does not help, so it is reported before.
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/conditions.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

/// Asks the servers that answer their probes, and so also whether it is they who answer. Those that do not tell keep
/// what is known of them.
Awaitable<> Pass::check_volumes() {
  const auto now = services_.env.clock.now();
  auto ask_volume = [&](const ServerView& server) -> Awaitable<> {
    auto session = co_await open(server);
    if (!session) co_return;
    auto volume = co_await session->volume();
    services_.prober.set_volume(cluster_.object.key(), server.name, volume ? *volume : std::nullopt, now);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (const auto& server : servers_) {
      const auto& health = server.health;
      const bool answers = health.verdict == Verdict::read_only || health.verdict == Verdict::writable;
      const bool has_stranger = !server.address.empty() && health.stranger_at == server.address;
      const bool is_due = !health.volume_asked_at || now - *health.volume_asked_at >= services_.options.volume_interval;
      if ((answers && is_due) || has_stranger) scope.spawn(ask_volume(server));
    }
    co_return;
  };
  co_await async::with_scope(body);
  for (auto& server : servers_) {
    const auto fresh = services_.prober.health(cluster_.object.key(), server.name);
    server.health.volume = fresh.volume;
    server.health.is_volume_full = fresh.is_volume_full;
  }
}

void Pass::report_volumes() {
  if (set_replicas_ == 0) kube::remove_condition(cluster_.status, conditions::volumes_healthy);
  std::string full;
  bool is_known = false;
  for (const auto& server : servers_) {
    is_known = is_known || server.health.volume;
    if (server.health.is_volume_full) full += (full.empty() ? "" : ", ") + server.name;
  }
  if (!is_known) return;
  if (full.empty()) {
    set(conditions::volumes_healthy, ConditionStatus::yes, reasons::space_left, "all volumes have space left");
    return;
  }
  // No numbers: each change of the message would be written.
  const auto message = full + ": the volume is nearly full; raise spec.storage.size";
  const auto* last = kube::find_condition_in_status(cluster_.status, conditions::volumes_healthy);
  if (last == nullptr || kube::string_at(*last, {"message"}) != message) warn(reasons::volume_full, message);
  set(conditions::volumes_healthy, ConditionStatus::no, reasons::volume_full, message);
}

}  // namespace hubferry::mysql
