#include "hubferry/kube/leader_election.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/event_recorder.hpp"
#include "kube/control/lease_machine.hpp"

namespace hubferry::kube {

namespace {

/// Releasing the Lease only helps the next leader: the process must not hang on it.
constexpr Duration release_limit = std::chrono::seconds{3};

/// A Lease that was read this recently need not be read again before a destructive write. A leader reads or renews it
/// this often at most, however many such writes there are.
constexpr Duration confirmation_age = std::chrono::seconds{1};

void require(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument("leader election: " + message);
}

Result<Object> timed_out() {
  return Error{ErrorKind::ambiguous, 0, {}, "no answer in time", std::nullopt};
}

}  // namespace

void LeaderElectionOptions::validate() const {
  require(!name.empty(), "the Lease needs a name");
  require(!ns.empty(), "the Lease needs a namespace");
  require(!identity.empty(), "a candidate needs an identity of its own");
  require(lease_duration >= std::chrono::seconds{1},
          "the lease duration must be at least 1s, not " + async::format_duration(lease_duration));
  require(retry_period > Duration::zero(), "the retry period must be above zero");
  require(renew_deadline < lease_duration,
          "the renew deadline (" + async::format_duration(renew_deadline) + ") must be below the lease duration (" +
              async::format_duration(lease_duration) +
              "), or a leader that cannot renew would still work when another takes over");
  require(std::chrono::duration<double>(retry_period) * 1.2 < renew_deadline,
          "the retry period (" + async::format_duration(retry_period) +
              ") times 1.2 must be below the renew deadline (" + async::format_duration(renew_deadline) +
              "), or a single failed renewal would end the leadership");
}

LeaderElector::LeaderElector(Api& api, LeaderElectionOptions options, Env env, EventRecorder* events)
    : api_(api),
      options_((options.validate(), std::move(options))),
      env_(std::move(env)),
      events_(events),
      machine_(std::make_unique<LeaseMachine>(options_, env_.random)),
      master_status_(env_.metrics
                         .gauge_family("leader_election_master_status",
                                       "1 where this process leads, 0 where it is a candidate", {"name"})
                         .with({options_.name})),
      slow_path_(env_.metrics
                     .counter_family("leader_election_slowpath_total",
                                     "Renewals that had to read the Lease before they could write it", {"name"})
                     .with({options_.name})) {
  env_.log = env_.log.named("leader-election").with("lease", options_.ns + "/" + options_.name);
}

LeaderElector::~LeaderElector() = default;

bool LeaderElector::is_leader() const {
  return machine_->is_leading(env_.clock.now());
}

std::string LeaderElector::leader() const {
  return machine_->holder();
}

LeaderEpoch LeaderElector::epoch() const {
  return {options_.identity, machine_->epoch()};
}

TimePoint LeaderElector::until() const {
  return machine_->state() == LeaseState::leading ? machine_->leads_until() : TimePoint{};
}

Duration LeaderElector::least_time() const {
  return options_.renew_deadline / 10;
}

Awaitable<bool> LeaderElector::confirm() {
  const auto permit = co_await confirming_.acquire();
  if (!is_leader()) co_return false;
  const auto started = env_.clock.now();
  if (started - confirmed_at_ < confirmation_age) co_return true;
  auto request = api_.get(resources::leases, {options_.ns, options_.name});
  const auto lease = co_await async::before_deadline(env_.clock, machine_->leads_until(), std::move(request));
  if (!lease || !*lease) co_return false;
  const bool ours = is_leader() && machine_->is_of_our_term(**lease);
  if (ours) confirmed_at_ = started;
  co_return ours;
}

Awaitable<bool> LeaderElector::outrank(std::int64_t number) {
  machine_->raise_above(number);
  while (is_leader() && machine_->epoch() <= number) co_await renewals_.wait();
  co_return is_leader();
}

void LeaderElector::report_changes() {
  renewals_.wake_all();
  const std::string holder = machine_->holder();
  if (holder == reported_leader_) return;
  reported_leader_ = holder;
  if (holder.empty())
    env_.log.info("Lease has no holder");
  else
    env_.log.info("new leader elected", {{"leader", holder}});
  if (options_.on_leader_change) options_.on_leader_change(holder);
}

Awaitable<> LeaderElector::read() {
  if (machine_->state() == LeaseState::leading) slow_path_.increment();
  const auto limit = async::later(env_.clock.now(), options_.renew_deadline / 2);
  auto request = api_.get(resources::leases, {options_.ns, options_.name});
  auto in_time = co_await async::before_deadline(env_.clock, limit, std::move(request));
  const Result<Object> answer = in_time ? std::move(*in_time) : timed_out();
  const auto now = env_.clock.now();
  if (answer) {
    machine_->on_read(*answer, now);
  } else if (answer.error().kind == ErrorKind::not_found) {
    machine_->on_read(std::nullopt, now);
  } else {
    last_error_ = answer.error().describe();
    env_.log.warn("failed to read Lease", {{"error", last_error_}});
    // Nothing was written: only the pause counts.
    machine_->on_failure({ErrorKind::unreachable, 0, {}, last_error_, std::nullopt}, now);
  }
  report_changes();
}

Awaitable<> LeaderElector::write(json::object lease, bool create) {
  const auto started = env_.clock.now();
  // Half of the deadline, so that a connection that hangs leaves time for another try.
  const auto limit = async::later(started, options_.renew_deadline / 2);
  auto request =
      create ? api_.create(resources::leases, std::move(lease)) : api_.update(resources::leases, std::move(lease));
  auto in_time = co_await async::before_deadline(env_.clock, limit, std::move(request));
  const Result<Object> answer = in_time ? std::move(*in_time) : timed_out();
  const auto now = env_.clock.now();
  if (answer) {
    machine_->on_written(*answer, started, now);
    if (machine_->is_leading(now)) confirmed_at_ = std::max(confirmed_at_, started);
  } else {
    last_error_ = answer.error().describe();
    const bool race = answer.error().kind == ErrorKind::conflict || answer.error().kind == ErrorKind::already_exists;
    if (race)
      env_.log.debug("conflict on Lease write", {{"error", last_error_}});
    else
      env_.log.warn("failed to write Lease", {{"error", last_error_}});
    machine_->on_failure(answer.error(), now);
  }
  report_changes();
}

Awaitable<> LeaderElector::step() {
  auto action = machine_->next(env_.clock.now(), env_.clock.wall_now());
  if (std::holds_alternative<LeaseMachine::Read>(action)) co_await read();
  if (auto* created = std::get_if<LeaseMachine::Create>(&action)) co_await write(std::move(created->lease), true);
  if (auto* updated = std::get_if<LeaseMachine::Update>(&action)) co_await write(std::move(updated->lease), false);
  if (const auto* pause = std::get_if<LeaseMachine::Pause>(&action)) co_await env_.clock.sleep_until(pause->until);
}

Awaitable<> LeaderElector::acquire() {
  while (machine_->state() == LeaseState::following) co_await step();
}

Awaitable<> LeaderElector::renew() {
  while (machine_->is_leading(env_.clock.now()))
    co_await async::before_deadline(env_.clock, machine_->leads_until(), step());
  std::string why = "lost Lease " + options_.ns + "/" + options_.name;
  if (machine_->holder() != options_.identity && !machine_->holder().empty())
    why += " to " + machine_->holder();
  else
    why += ": not renewed for " + async::format_duration(options_.renew_deadline);
  if (!last_error_.empty()) why += " (" + last_error_ + ")";
  throw LeadershipLost(why);
}

Awaitable<> LeaderElector::release() {
  // A conflict may come from a label edit, or from our own renewal whose response was lost: read once more.
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto lease = machine_->released(env_.clock.wall_now());
    if (!lease) co_return;
    auto answer = co_await api_.update(resources::leases, std::move(*lease));
    if (answer) {
      machine_->on_read(*answer, env_.clock.now());
      env_.log.info("Lease released");
      co_return;
    }
    env_.log.debug("failed to release Lease", {{"error", answer.error().describe()}});
    if (answer.error().kind != ErrorKind::conflict) co_return;
    auto current = co_await api_.get(resources::leases, {options_.ns, options_.name});
    if (!current) co_return;
    machine_->on_read(*current, env_.clock.now());
  }
}

Awaitable<> LeaderElector::run(std::function<Awaitable<>(LeaderEpoch)> lead) {
  bool ended = false;
  while (!ended) {
    try {
      co_await run_term(lead);
      ended = true;
    } catch (const LeadershipLost& lost) {
      if (!options_.return_to_standby) throw;
      env_.log.warn("stopped leading, candidate again", {{"error", lost.what()}});
    }
  }
}

Awaitable<> LeaderElector::run_term(const std::function<Awaitable<>(LeaderEpoch)>& lead) {
  machine_ = std::make_unique<LeaseMachine>(options_, env_.random, machine_->transitions());
  co_await acquire();
  LeaderEpoch epoch{options_.identity, machine_->epoch()};
  master_status_.set(1);
  env_.log.info("started leading", {{"identity", options_.identity}, {"epoch", epoch.number}});
  if (events_ != nullptr) {
    ObjectReference lease;
    lease.api_version = resources::leases.api_version();
    lease.kind = resources::leases.kind;
    lease.ns = options_.ns;
    lease.name = options_.name;
    events_->event(lease, EventType::normal, "LeaderElection", "Elect", options_.identity + " became leader");
  }

  async::TaskScope scope{co_await async::asio::this_coro::executor};
  auto work = [&]() -> Awaitable<> {
    co_await lead(epoch);
    scope.stop();
  };
  scope.spawn(work());
  scope.spawn(renew());
  std::exception_ptr error;
  try {
    co_await scope.join();
  } catch (...) {
    error = std::current_exception();
  }
  // All work has been joined: only now may another process lead.
  const auto expiry = async::later(machine_->leads_until(), options_.lease_duration - options_.renew_deadline);
  if (const auto now = env_.clock.now(); now >= expiry)
    env_.log.error("work continued after the Lease had expired: another leader may have started",
                   {{"overrun", now - expiry}});
  co_await async::asio::this_coro::throw_if_cancelled(false);
  if (options_.release_on_stop && is_leader()) {
    try {
      auto limited = async::with_deadline(env_.clock, async::later(env_.clock.now(), release_limit), release());
      co_await async::shielded(std::move(limited));
    } catch (...) {
      env_.log.warn("failed to release Lease", {{"error", async::describe(std::current_exception())}});
    }
  }
  co_await async::asio::this_coro::throw_if_cancelled(true);
  master_status_.set(0);
  if (error) {
    // A stop that was asked for is no error.
    if (async::is_cancellation(error))
      env_.log.info("stopped leading", {{"epoch", epoch.number}, {"reason", "shutting down"}});
    else
      env_.log.info("stopped leading", {{"epoch", epoch.number}, {"error", async::describe(error)}});
    std::rethrow_exception(error);
  }
  env_.log.info("stopped leading", {{"epoch", epoch.number}, {"reason", "work finished"}});
}

}  // namespace hubferry::kube
