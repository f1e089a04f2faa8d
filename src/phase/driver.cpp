#include "hubferry/phase/driver.hpp"

#include <boost/asio/this_coro.hpp>
#include <cassert>

#include "hubferry/async/deadline.hpp"

namespace hubferry::phase {

namespace asio = boost::asio;

namespace {

std::string_view to_label(Reconciled::Outcome outcome) {
  switch (outcome) {
    case Reconciled::Outcome::gone:
      return "gone";
    case Reconciled::Outcome::terminal:
      return "terminal";
    case Reconciled::Outcome::again:
      return "requeue_after";
    case Reconciled::Outcome::failed:
      return "error";
  }
  return "error";
}

}  // namespace

/// A key that the driver owns until this is destroyed, even if its machine never runs.
class Driver::Turn {
 public:
  Turn(Driver& driver, Key of, async::Semaphore::Permit permit)
      : key(driver.running_.emplace(std::move(of), this).first->first), driver_(driver), permit_(std::move(permit)) {
    driver_.running_gauge_.add(1);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    // The next reconcile finds out what is left to do.
    if (cancelled && !concluded) driver_.source_.add(key);
    driver_.source_.done(key);
    driver_.running_.erase(driver_.running_.find(key));
    driver_.running_gauge_.add(-1);
    if (driver_.running_.empty()) driver_.idle_.wake_all();
  }

  const Key& key;  // in running_
  async::TaskScope::Child* task = nullptr;
  bool cancelled = false;  // by cancel()
  bool concluded = false;

 private:
  Driver& driver_;
  async::Semaphore::Permit permit_;
};

Driver::Driver(MachineCore& machine, KeySource& source, DriverOptions options)
    : machine_(machine),
      source_(source),
      options_(options),
      running_gauge_(
          machine.env()
              .metrics
              .gauge_family("hubferry_phase_running", "Phase machines that run or wait inside a handler.", {"machine"})
              .with({machine.options().name})),
      reconciles_(machine.env().metrics.counter_family(
          "hubferry_phase_reconciles_total", "Reconciles of phase machines, by result.", {"machine", "result"})),
      permits_(options.max_concurrent) {
  for (const auto* result : {"gone", "terminal", "requeue_after", "error", "cancelled"})
    reconciles_.with({machine_.options().name, result});
}

Driver::~Driver() {
  assert(all_ == nullptr || running_.empty());
}

Awaitable<> Driver::run() {
  auto body = [this](async::TaskScope& scope) { return work(scope); };
  co_await async::with_scope(body);
}

Awaitable<> Driver::work(async::TaskScope& scope) {
  struct Mark {
    Driver& driver;
    ~Mark() { driver.all_ = nullptr; }
  } mark{*this};
  all_ = &scope;
  // Keys are taken in a scope of its own: stop() ends that, and only that.
  async::TaskScope intake{co_await asio::this_coro::executor};
  intake_ = &intake;
  if (!stopping_) intake.spawn(take_keys(scope));
  std::exception_ptr failure;
  try {
    co_await intake.join();
  } catch (...) {
    failure = std::current_exception();
  }
  intake_ = nullptr;
  if (failure) std::rethrow_exception(failure);

  auto& clock = machine_.env().clock;
  const auto deadline = async::later(clock.now(), options_.grace);
  auto all_at_rest = [this]() -> Awaitable<> {
    while (!running_.empty()) co_await idle_.wait();
  };
  try {
    if (!running_.empty()) co_await async::with_deadline(clock, deadline, all_at_rest());
  } catch (const boost::system::system_error&) {
    // Time is up, or everything is being cancelled anyway.
  }
  scope.stop();
}

Awaitable<> Driver::take_keys(async::TaskScope& scope) {
  while (!stopping_) {
    auto permit = co_await permits_.acquire();
    auto key = co_await source_.get();
    if (!key) co_return;
    auto turn = std::make_unique<Turn>(*this, std::move(*key), std::move(permit));
    auto& place = *turn;
    auto* const task = scope.spawn(run_one(std::move(turn)));
    if (task == nullptr) co_return;
    place.task = task;
  }
}

Awaitable<> Driver::run_one(std::unique_ptr<Turn> turn) {
  Reconciled result;
  std::exception_ptr thrown;
  try {
    result = co_await machine_.reconcile(turn->key);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    // Rethrown, it ends all machines: only our own cancellation may, not one that a handler let through.
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (async::is_cancelled(cancellation) && async::is_cancellation(thrown)) {
      if (turn->cancelled) reconciles_.with({machine_.options().name, "cancelled"}).increment();
      std::rethrow_exception(thrown);
    }
    result.outcome = Reconciled::Outcome::failed;
    result.error = Error::from_exception(thrown);
  }
  turn->concluded = true;
  conclude(turn->key, result);
}

void Driver::conclude(const Key& key, const Reconciled& result) {
  reconciles_.with({machine_.options().name, to_label(result.outcome)}).increment();
  switch (result.outcome) {
    case Reconciled::Outcome::gone:
    case Reconciled::Outcome::terminal:
      source_.forget(key);
      break;
    case Reconciled::Outcome::again:
      source_.forget(key);
      source_.add_after(key, result.after);
      break;
    case Reconciled::Outcome::failed:
      machine_.env().log.error(
          "reconcile failed",
          {{"machine", machine_.options().name}, {"resource", to_string(key)}, {"error", result.error.message}});
      source_.add_rate_limited(key);
      break;
  }
}

void Driver::stop() {
  stopping_ = true;
  if (intake_ != nullptr) intake_->stop();
}

void Driver::abort() {
  stopping_ = true;
  if (all_ != nullptr) all_->stop();
}

bool Driver::cancel(const Key& key) {
  const auto found = running_.find(key);
  if (found == running_.end() || all_ == nullptr) return false;
  auto& turn = *found->second;
  turn.cancelled = true;
  all_->stop(*turn.task);
  return true;
}

}  // namespace hubferry::phase
