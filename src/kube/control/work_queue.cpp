#include "hubferry/kube/work_queue.hpp"

#include <algorithm>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>
#include <cassert>
#include <cmath>

#include "hubferry/async/deadline.hpp"

namespace hubferry::kube {

namespace {

/// The buckets that workqueue dashboards are drawn for: 10 ns to 1000 s.
std::vector<double> duration_buckets() {
  return obs::exponential_buckets(1e-8, 10, 12);
}

/// How often the gauges of unfinished work are brought up to date while there is some.
constexpr Duration gauge_period = std::chrono::seconds{1};

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

struct WorkQueue::Metrics {
  Metrics(obs::Metrics& metrics, const std::string& name, const std::string& controller)
      : depth(metrics.gauge_family("workqueue_depth", "Current depth of workqueue", labels()).with({name, controller})),
        adds(metrics.counter_family("workqueue_adds_total", "Total number of adds handled by workqueue", labels())
                 .with({name, controller})),
        retries(
            metrics.counter_family("workqueue_retries_total", "Total number of retries handled by workqueue", labels())
                .with({name, controller})),
        queue_duration(metrics
                           .histogram_family("workqueue_queue_duration_seconds",
                                             "How long in seconds an item stays in workqueue before being requested",
                                             labels(), duration_buckets())
                           .with({name, controller})),
        work_duration(metrics
                          .histogram_family("workqueue_work_duration_seconds",
                                            "How long in seconds processing an item from workqueue takes", labels(),
                                            duration_buckets())
                          .with({name, controller})),
        unfinished(metrics
                       .gauge_family("workqueue_unfinished_work_seconds",
                                     "Seconds of work in progress that work_duration has not observed yet: large "
                                     "values mean stuck workers",
                                     labels())
                       .with({name, controller})),
        longest(metrics
                    .gauge_family("workqueue_longest_running_processor_seconds",
                                  "How many seconds the longest running processor has been running", labels())
                    .with({name, controller})) {}

  static std::vector<std::string> labels() { return {"name", "controller"}; }

  obs::Gauge depth;
  obs::Counter adds;
  obs::Counter retries;
  obs::Histogram queue_duration;
  obs::Histogram work_duration;
  obs::Gauge unfinished;
  obs::Gauge longest;
};

WorkQueue::WorkQueue(WorkQueueOptions options, Env env)
    : options_(std::move(options)),
      env_(std::move(env)),
      metrics_(std::make_unique<Metrics>(env_.metrics, options_.name,
                                         options_.controller.empty() ? options_.name : options_.controller)) {}

WorkQueue::~WorkQueue() = default;

void WorkQueue::add(Key key) {
  if (shutting_down_) return;
  const auto [entry, fresh] = dirty_.try_emplace(key, env_.clock.now());
  if (!fresh) return;
  metrics_->adds.increment();
  if (!processing_.contains(key)) enqueue(key);
}

void WorkQueue::enqueue(const Key& key) {
  queue_.push_back(key);
  metrics_->depth.set(static_cast<double>(queue_.size()));
  workers_.wake_one();
}

void WorkQueue::add_after(Key key, Duration delay) {
  if (shutting_down_) return;
  metrics_->retries.increment();
  if (delay <= Duration::zero()) {
    add(std::move(key));
    return;
  }
  schedule(std::move(key), async::later(env_.clock.now(), delay));
}

void WorkQueue::schedule(Key key, TimePoint when) {
  const auto known = delayed_.find(key);
  if (known != delayed_.end()) {
    if (known->second->first.when <= when) return;
    schedule_.erase(known->second);
    delayed_.erase(known);
  }
  const bool earlier = schedule_.empty() || when < schedule_.begin()->first.when;
  const auto entry = schedule_.emplace(Due{when, next_sequence_++}, key).first;
  delayed_.emplace(std::move(key), entry);
  if (earlier) schedule_changed_.notify();
}

void WorkQueue::add_rate_limited(Key key) {
  if (shutting_down_) return;
  const unsigned before = failures_[key]++;
  const double wanted = static_cast<double>(options_.first_delay.count()) * std::pow(2.0, before);
  const auto most = static_cast<double>(options_.most_delay.count());
  const Duration own{static_cast<Duration::rep>(std::min(wanted, most))};
  add_after(std::move(key), std::max(own, overall_delay()));
}

Duration WorkQueue::overall_delay() {
  if (options_.overall_per_second <= 0) return Duration::zero();
  const auto interval =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / options_.overall_per_second));
  const auto allowance = std::chrono::duration_cast<Duration>(interval * std::max(options_.overall_burst - 1, 0.0));
  const auto now = env_.clock.now();
  next_token_ = std::max(next_token_, now - allowance);
  const auto granted = next_token_;
  next_token_ += interval;
  return std::max(granted - now, Duration::zero());
}

void WorkQueue::forget(const Key& key) {
  failures_.erase(key);
}

unsigned WorkQueue::retries(const Key& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

Awaitable<std::optional<Key>> WorkQueue::get() {
  while (queue_.empty()) {
    if (shutting_down_) co_return std::nullopt;
    co_await workers_.wait();
    // Not by an awaited function: a cancelled coroutine would throw there, and keep the wake-up to itself.
    const auto state = co_await async::asio::this_coro::cancellation_state;
    if (state.cancelled() != async::asio::cancellation_type::none) {
      if (!queue_.empty()) workers_.wake_one();  // pass the wake-up on to another worker
      async::throw_cancelled();
    }
  }
  std::optional<Key> key{std::move(queue_.front())};
  queue_.pop_front();
  const auto now = env_.clock.now();
  const auto dirty = dirty_.find(*key);
  metrics_->queue_duration.observe(seconds(now - dirty->second));
  metrics_->depth.set(static_cast<double>(queue_.size()));
  dirty_.erase(dirty);
  processing_.emplace(*key, now);
  if (processing_.size() == 1) schedule_changed_.notify();  // the gauges have something to show from now on
  co_return key;
}

void WorkQueue::done(const Key& key) {
  const auto run = processing_.find(key);
  assert(run != processing_.end() && "done() without a get() of this key");
  metrics_->work_duration.observe(seconds(env_.clock.now() - run->second));
  processing_.erase(run);
  // While others are being processed, run() updates them: to sum up thousands for each finished key would be too much.
  if (processing_.empty()) update_gauges();
  if (dirty_.contains(key)) enqueue(key);
  if (queue_.empty() && processing_.empty()) drain_.wake_all();
}

void WorkQueue::shut_down() {
  shutting_down_ = true;
  schedule_.clear();
  delayed_.clear();
  workers_.wake_all();
  schedule_changed_.notify();
}

Awaitable<> WorkQueue::shut_down_with_drain() {
  shut_down();
  while (!queue_.empty() || !processing_.empty()) co_await drain_.wait();
}

void WorkQueue::queue_due_keys() {
  const auto now = env_.clock.now();
  while (!schedule_.empty() && schedule_.begin()->first.when <= now) {
    Key key = std::move(schedule_.begin()->second);
    schedule_.erase(schedule_.begin());
    delayed_.erase(key);
    add(std::move(key));
  }
}

void WorkQueue::update_gauges() {
  const auto now = env_.clock.now();
  double total = 0;
  double longest = 0;
  for (const auto& [key, since] : processing_) {
    const double age = seconds(now - since);
    total += age;
    longest = std::max(longest, age);
  }
  metrics_->unfinished.set(total);
  metrics_->longest.set(longest);
}

TimePoint WorkQueue::next_wake_up() const {
  const auto due = schedule_.empty() ? async::never : schedule_.begin()->first.when;
  return processing_.empty() ? due : std::min(due, async::later(env_.clock.now(), gauge_period));
}

Awaitable<> WorkQueue::run() {
  while (!shutting_down_) {
    queue_due_keys();
    update_gauges();
    co_await async::before_deadline(env_.clock, next_wake_up(), schedule_changed_.wait());
  }
}

}  // namespace hubferry::kube
