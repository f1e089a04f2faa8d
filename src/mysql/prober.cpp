#include "mysql/prober.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"
#include "hubferry/mysql/resource.hpp"

namespace hubferry::mysql {

namespace {

/// What the reconcile loop acts on: it is woken when this changes.
auto level_of(const Health& health, const async::Duration& lag_limit, unsigned strikes) {
  const auto& sample = health.sample;
  const bool lagged = sample.lag && *sample.lag > std::chrono::duration<double>(lag_limit).count();
  return std::tuple{health.verdict,
                    health.strikes >= strikes,
                    health.unreachable >= strikes,
                    sample.io_running,
                    sample.sql_running,
                    lagged,
                    sample.master_server_id,
                    sample.version};
}

}  // namespace

Prober::Prober(Exporter& exporter, ProberOptions options, kube::Env env, std::function<void(const kube::Key&)> changed)
    : exporter_(exporter),
      options_(options),
      env_(std::move(env)),
      changed_(std::move(changed)),
      probes_(env_.metrics.counter_family("hubferry_mysql_probes_total", "Probes of MySQL servers, by verdict.",
                                          {"verdict"})),
      lateness_(env_.metrics.histogram("hubferry_mysql_probe_lateness_seconds",
                                       "How much later than planned the probes of a cluster began.",
                                       obs::exponential_buckets(0.001, 4, 8))) {
  for (const auto verdict : {Verdict::unknown, Verdict::unreachable, Verdict::read_only, Verdict::writable})
    probes_.with({to_string(verdict)});
}

void Prober::watch(const kube::Key& cluster, std::vector<ProbeTarget> targets, const std::string& primary,
                   async::Duration lag_limit) {
  auto& watched = clusters_[cluster];
  if (watched == nullptr) {
    watched = std::make_shared<Watched>();
    unstarted_.push_back(cluster);
    started_.notify();
  }
  watched->lag_limit = lag_limit;
  std::erase_if(watched->health, [&](const auto& entry) {
    return std::ranges::none_of(targets, [&](const ProbeTarget& target) { return target.pod == entry.first; });
  });
  bool is_new = false;
  for (const auto& target : targets) {
    const auto before = std::ranges::find(watched->targets, target.pod, &ProbeTarget::pod);
    if (before == watched->targets.end() || before->address == target.address) continue;
    // Another server has this name now: what is known of its predecessor says nothing about it.
    auto& health = watched->health[target.pod];
    health.verdict = Verdict::unknown;
    health.sample = {};
    health.unreachable = 0;
    health.absence.reset();
    is_new = true;
  }
  watched->targets = std::move(targets);
  if (is_new) watched->wake.notify();
  if (watched->primary == primary) return;
  watched->primary = primary;
  // Until now it was read-only as a replica has to be.
  if (const auto found = watched->health.find(primary); found != watched->health.end()) found->second.strikes = 0;
  watched->wake.notify();
}

void Prober::forget(const kube::Key& cluster) {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return;
  found->second->forgotten = true;
  found->second->wake.notify();
  clusters_.erase(found);
}

void Prober::poke(const kube::Key& cluster) {
  if (const auto found = clusters_.find(cluster); found != clusters_.end()) found->second->wake.notify();
}

void Prober::notify_after_probes(const kube::Key& cluster) {
  if (const auto found = clusters_.find(cluster); found != clusters_.end()) found->second->notifies = true;
}

Health* Prober::find(const kube::Key& cluster, const std::string& pod) {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return nullptr;
  const auto entry = found->second->health.find(pod);
  return entry == found->second->health.end() ? nullptr : &entry->second;
}

void Prober::set_absent(const kube::Key& cluster, const std::string& pod, GtidPosition position, async::TimePoint at) {
  auto* health = find(cluster, pod);
  if (health == nullptr || health->unreachable == 0) return;
  // While the primary cannot be asked the replica may have been connected.
  const bool is_in_a_row = health->absence && at - health->absence->at <= options_.interval + absence_margin;
  const auto since = is_in_a_row ? health->absence->since : at;
  health->absence = Absence{std::move(position), since, at};
}

void Prober::clear_absent(const kube::Key& cluster, const std::string& pod) {
  if (auto* health = find(cluster, pod)) health->absence.reset();
}

async::TimePoint Prober::waited_since(const kube::Key& cluster, const std::string& pod) {
  auto* health = find(cluster, pod);
  const auto now = env_.clock.now();
  if (health == nullptr) return now;  // not probed yet
  if (!health->waited_since) health->waited_since = now;
  return *health->waited_since;
}

void Prober::clear_waits(const kube::Key& cluster) {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return;
  for (auto& [pod, health] : found->second->health) health.waited_since.reset();
}

void Prober::set_volume(const kube::Key& cluster, const std::string& pod, std::optional<Volume> volume,
                        async::TimePoint at) {
  auto* health = find(cluster, pod);
  if (health == nullptr) return;
  health->volume = volume;
  health->volume_asked_at = at;
  health->is_volume_full = volume && is_nearly_full(*volume, health->is_volume_full);
}

void Prober::set_answered(const kube::Key& cluster, const std::string& pod) {
  if (auto* health = find(cluster, pod)) {
    health->absence.reset();
    health->waited_since.reset();
  }
}

void Prober::set_stranger(const kube::Key& cluster, const std::string& pod, const std::string& address) {
  if (auto* health = find(cluster, pod)) health->stranger_at = address;
}

bool Prober::is_silent(const kube::Key& cluster) const {
  const auto found = clusters_.find(cluster);
  return found != clusters_.end() && found->second->silent_rounds > 0;
}

Health Prober::health(const kube::Key& cluster, const std::string& pod) const {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return {};
  const auto entry = found->second->health.find(pod);
  return entry == found->second->health.end() ? Health{} : entry->second;
}

async::Awaitable<> Prober::run() {
  auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
    for (;;) {
      for (const auto& cluster : std::exchange(unstarted_, {}))
        if (const auto found = clusters_.find(cluster); found != clusters_.end())
          scope.spawn(follow(cluster, found->second));
      co_await started_.wait();
    }
  };
  co_await async::with_scope(body);
}

async::Awaitable<> Prober::follow(kube::Key cluster, Pointer watched) {
  auto planned = env_.clock.now();
  while (!watched->forgotten) {
    const auto late = env_.clock.now() - planned;
    lateness_.observe(std::chrono::duration<double>(std::max(late, async::Duration::zero())).count());
    planned = async::later(env_.clock.now(), options_.interval);
    co_await probe_all(cluster, watched);
    const bool woken = co_await async::before_deadline(env_.clock, planned, watched->wake.wait());
    if (woken) planned = env_.clock.now();
  }
}

async::Awaitable<> Prober::probe_all(kube::Key cluster, Pointer watched) {
  const auto deadline = async::later(env_.clock.now(), options_.timeout);
  bool changed = false;
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    for (const auto& target : watched->targets) scope.spawn(probe(target, watched, deadline, changed));
    co_return;
  };
  co_await async::with_scope(body);
  notice_silence(*watched);
  const bool notifies = std::exchange(watched->notifies, false) || changed;
  if (notifies && !watched->forgotten) changed_(cluster);
}

/// While no server answers it is as likely that the operator is cut off. When the first one answers again, those that
/// still do not get their strikes anew: otherwise whichever answers last would count as failed at once. A single round
/// is too short for that: a primary that is dead would never get three strikes beside a replica that answers by turns.
void Prober::notice_silence(Watched& watched) {
  const auto is_unreachable = [](const auto& entry) { return entry.second.verdict == Verdict::unreachable; };
  const bool silent = !watched.health.empty() && std::ranges::all_of(watched.health, is_unreachable);
  const bool was_cut_off = watched.silent_rounds >= options_.strikes;
  watched.silent_rounds = silent ? watched.silent_rounds + 1 : 0;
  if (silent || !was_cut_off) return;
  for (auto& [pod, health] : watched.health)
    if (health.verdict == Verdict::unreachable) health.strikes = std::min(health.strikes, 1U);
}

async::Awaitable<> Prober::probe(ProbeTarget target, Pointer watched, async::TimePoint deadline, bool& changed) {
  std::optional<Sample> sample;
  const auto begun_for = watched->primary;
  const auto begun_at = env_.clock.now();
  const auto known = watched->health.find(target.pod);
  const bool has_stranger = known != watched->health.end() && known->second.stranger_at == target.address;
  if (!target.address.empty() && !has_stranger) {
    const auto page = co_await exporter_.scrape(target.address, exporter_port, deadline);
    if (page) sample = parse_metrics(*page);
    // Of another server, which was given this address. One of the same number is found by SQL: set_stranger().
    if (sample && sample->server_id && *sample->server_id != target.server_id) sample.reset();
  }
  const auto current = std::ranges::find(watched->targets, target.pod, &ProbeTarget::pod);
  if (current == watched->targets.end() || current->address != target.address) co_return;  // it was replaced meanwhile
  auto& health = watched->health[target.pod];
  const auto before = level_of(health, watched->lag_limit, options_.strikes);
  health.verdict = verdict_of(sample);
  probes_.with({to_string(health.verdict)}).increment();
  const auto now = env_.clock.now();
  if (sample) {
    health.sample = *sample;
    if (sample->lag) {
      health.last_lag = sample->lag;
      health.last_lag_at = now;
    }
  } else {
    health.sample = {};
  }
  // A probe that began before this server became the primary says nothing about it as a primary.
  const bool counts = begun_for == watched->primary;
  if (health.verdict == Verdict::unreachable) {
    if (health.unreachable++ == 0) health.unreachable_since = now;
  } else if (health.verdict != Verdict::unknown) {
    health.unreachable = 0;
  }
  if (health.verdict != Verdict::unreachable) health.absence.reset();
  if (health.verdict == Verdict::writable) {
    health.strikes = 0;
    health.last_writable_at = begun_at;
  }
  if (counts && (health.verdict == Verdict::unreachable || health.verdict == Verdict::read_only)) {
    ++health.strikes;
    health.last_strike_at = now;
  }
  changed = changed || level_of(health, watched->lag_limit, options_.strikes) != before;
}

}  // namespace hubferry::mysql
