#include <boost/json/object.hpp>

#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/hub_pause.hpp"
#include "klusterlet/session.hpp"

// The cluster's Lease on its hub: the heartbeat that renews it, and the check of its age.
namespace hubferry::klusterlet {

namespace {

constexpr auto default_lease_duration = std::chrono::seconds{60};
// Just past the time until which the connection is not lost.
constexpr auto instant = std::chrono::milliseconds{1};
// For a kubeconfig that is repaired in the last moment, or a process that runs again, to send a heartbeat.
constexpr auto grace = std::chrono::seconds{30};
// Timers of a busy machine are late as well, but not that much.
constexpr auto longest_delay = std::chrono::seconds{5};

std::optional<WallTime> renew_time_of(const kube::Object& lease) {
  try {
    return async::parse_time(lease.string_at({"spec", "renewTime"}));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

bool Session::is_accepted() const {
  return cluster_ != nullptr && cluster_->is_true(ocm::names::accepted);
}

Duration Session::lease_duration() const {
  const auto seconds = cluster_ == nullptr ? 0 : cluster_->lease_duration_seconds();
  return seconds > 0 ? Duration{std::chrono::seconds{seconds}} : Duration{default_lease_duration};
}

Duration Session::period() const {
  return heartbeat_period(lease_duration(), agent_.connection_timeout());
}

Awaitable<> Session::beat() {
  auto& env = agent_.env;
  while (true) {
    while (!is_accepted()) co_await beat_changed_.wait();
    report(kube::EventType::normal, "ManagedClusterLeaseUpdateStarted", "heartbeat started");
    async::Backoff failures{{}, env.clock, env.random};
    while (is_accepted()) {
      const auto failure = co_await renew_lease();
      if (!failure) failures.reset();
      period_in_use_ = period();
      const auto longest = period_in_use_;
      // Agents that were refused at the same time do not all come back at the same time.
      const auto pause =
          failure ? std::min(pause_after(*failure, failures, env.random), env.random.between(longest * 3 / 4, longest))
                  : env.random.between(longest, longest + longest / 4);
      // A changed duration takes effect immediately.
      const auto next = async::later(env.clock.now(), pause);
      co_await async::before_deadline(env.clock, next, beat_changed_.wait());
      check_for_stop(next);
    }
    report(kube::EventType::normal, "ManagedClusterLeaseUpdateStoped", "heartbeat stopped");
  }
}

Awaitable<std::optional<kube::Error>> Session::renew_lease() {
  const auto now = agent_.env.clock.wall_now();
  const auto sent = agent_.env.clock.now();
  last_beat_ = {async::format_micro_time(now), sent};
  auto renewed = co_await lease_.renew(*api_, lease_key_, last_beat_.renew_time);
  if (renewed) {
    reached(sent);
    rejected_ = false;
    agent_.renewed_after_rejection = false;
    agent_.connection_works(ConnectionPart::heartbeat);
    ++beats_;
  } else {
    heartbeat_failed(renewed.error());
  }
  tried_to_beat_ = true;
  status_changed_.notify();
  agent_.metrics.heartbeats.with({renewed ? "ok" : "failed"}).increment();
  if (!renewed) co_return renewed.error();
  co_return std::nullopt;
}

void Session::reached(TimePoint sent) {
  timeout_.reached(sent);
  agent_.reached = std::max(agent_.reached, sent);
  agent_.grace_given = false;
}

void Session::give_grace() {
  const auto now = agent_.env.clock.now();
  const auto graced = std::min(now, async::later(now - agent_.connection_timeout(), grace));
  // With more time left than that the hub needs none, and may later.
  if (agent_.grace_given || graced <= agent_.reached) return;
  agent_.grace_given = true;
  agent_.reached = graced;
  timeout_.reached(graced);
}

void Session::check_for_stop(TimePoint due) {
  const auto now = agent_.env.clock.now();
  if (now <= async::later(due, longest_delay) || agent_.grace_given) return;
  agent_.env.log.warn("this process was stopped for a while", {{"late", async::format_duration(now - due)}});
  give_grace();
}

void Session::heartbeat_failed(const kube::Error& error) {
  rejected_ = error.kind == kube::ErrorKind::unauthorized;
  agent_.env.log.debug("heartbeat failed", {{"error", error.describe()}});
  agent_.connection_failed(ConnectionPart::heartbeat, error);
}

Awaitable<> Session::watch_connection() {
  auto& clock = agent_.env.clock;
  const auto rotation = rotation_start();
  while (apply_settings()) {
    const bool lost = lost_secret();
    if (!rotating_ && (lost || clock.now() >= rotation)) {
      rotating_ = true;
      scope_->spawn(rotate(lost));
    }
    const auto seen = agent_.store.version();
    // One wait for changed settings, the timeout and the certificate: thousands of agents do this at once. Every
    // heartbeat that succeeds postpones the timeout; the Lease is read only if none did.
    const auto lost_at = async::later(timeout_.due(), instant);
    const auto due = rotating_ ? lost_at : std::min(lost_at, rotation);
    // A timeout that was shortened may have passed before the wait begins.
    const bool waits = due > clock.now();
    const bool changed = co_await async::before_deadline(clock, due, agent_.store.wait_for_change(seen));
    if (waits && !changed) check_for_stop(due);
    if (changed || !timeout_.expired(clock.now())) continue;
    co_await read_lease();
    if (!timeout_.expired(clock.now())) continue;
    // A hub that answers, but rejects this certificate, is not lost yet: it may issue another one. Only once, if there
    // are other hubs.
    if (rejected_ && !(agent_.multiple_hubs() && agent_.renewed_after_rejection)) {
      agent_.rejected_certificate = agent_.secret->certificate;
      agent_.renewed_after_rejection = true;
      end(Leave{LeaveReason::certificate_rejected, "the hub no longer accepts our certificate"});
      co_return;
    }
    // Also if there is no other hub: this one may have been restored without our ManagedCluster. Then only the
    // bootstrap credential can register it.
    end(Leave{LeaveReason::connection_lost,
              "no heartbeat has reached the hub for " + async::format_duration(agent_.connection_timeout())});
    co_return;
  }
}

/// Whether a heartbeat has reached the hub whose answer was lost.
Awaitable<> Session::read_lease() {
  auto& clock = agent_.env.clock;
  // A hub that does not answer must not delay the decision to leave it.
  kube::Request request;
  request.resource = kube::resources::leases;
  request.key = lease_key_;
  request.deadline = async::later(clock.now(), std::chrono::seconds{10});
  auto lease = co_await api_->call(std::move(request));
  if (lease) {
    const auto renewed = renew_time_of(*lease);
    if (renewed && !last_beat_.renew_time.empty() && *renewed == async::parse_time(last_beat_.renew_time))
      reached(last_beat_.sent);
    co_return;
  }
  // A Lease that does not exist yet is not a connection failure.
  if (lease.error().kind != kube::ErrorKind::not_found) heartbeat_failed(lease.error());
}

}  // namespace hubferry::klusterlet
