#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"

namespace hubferry::sim {

/// A duration drawn from a distribution, never negative.
struct Latency {
  enum class Shape { fixed, uniform, exponential };
  Shape shape = Shape::fixed;
  async::Duration low{0};   // fixed: the value; others: the minimum
  async::Duration high{0};  // uniform: the maximum; exponential: the mean above the minimum

  static Latency fixed(async::Duration value) { return {Shape::fixed, value, value}; }
  static Latency uniform(async::Duration low, async::Duration high) { return {Shape::uniform, low, high}; }
  static Latency exponential(async::Duration least, async::Duration mean) { return {Shape::exponential, least, mean}; }

  [[nodiscard]] async::Duration draw(async::Random& random) const;
};

/// Which requests a rule matches. Empty members match everything.
struct FaultTarget {
  /// get, list, watch, create, update, patch, apply, delete; or "read", "write" for all reads or writes.
  std::string verb = {};
  std::string resource = {};  // plural
  std::string subresource = {};
  std::string ns = {};
  std::string name = {};
};

/// One fault: for which requests, how often, and its effect. Created by Faults::on(); each has one effect:
///   faults.on({"update", "leases"}).times(2).fail(409);
///   faults.on({"write"}).rate(0.05).reset_after();
class FaultRule {
 public:
  /// The next `count` matching requests (default: 1). A script is exhausted when all such rules are used up.
  FaultRule& times(std::uint64_t count);
  /// Each matching request with this probability, without end.
  FaultRule& rate(double probability);
  FaultRule& always() { return rate(1.0); }
  /// Skips the first `count` matching requests.
  FaultRule& after(std::uint64_t count);

  /// Answers with this HTTP status without executing the request.
  FaultRule& fail(int status, std::optional<int> retry_after_seconds = std::nullopt);
  /// Adds latency to the request.
  FaultRule& delay(Latency latency);
  /// Resets the connection before the server receives the request: unreachable.
  FaultRule& reset_before();
  /// Resets the connection after the request took effect: a write is then ambiguous.
  FaultRule& reset_after();
  /// Lists that a real server may answer from its watch cache (resourceVersion "0", or not older than a version) return
  /// the state of this many versions ago.
  FaultRule& stale(std::int64_t versions);
  /// Drops the event from the watch (a bug that servers have had).
  FaultRule& drop_event();
  FaultRule& delay_event(Latency latency);
  /// Breaks the watch at the event, which is not delivered.
  FaultRule& cut_watch();
  /// Compacts the server's history before it serves the request.
  FaultRule& compact();

 private:
  friend class Faults;
  enum class Effect {
    none,
    fail,
    delay,
    reset_before,
    reset_after,
    stale,
    drop_event,
    delay_event,
    cut_watch,
    compact
  };
  [[nodiscard]] bool concerns_events() const {
    return effect_ == Effect::drop_event || effect_ == Effect::delay_event || effect_ == Effect::cut_watch;
  }

  FaultTarget target_;
  Effect effect_ = Effect::none;
  std::optional<std::uint64_t> left_ = 1;
  double probability_ = 1.0;
  std::uint64_t skip_ = 0;
  int status_ = 0;
  std::optional<int> retry_after_;
  Latency latency_;
  std::int64_t versions_ = 0;
};

/// The faults of one server. Deterministic: the same seed and the same requests give the same faults.
/// Executor: the server's.
class Faults {
 public:
  explicit Faults(async::Random random) : random_(random) {}

  /// Adds a rule, evaluated after the existing ones. The reference is valid until clear().
  FaultRule& on(FaultTarget target);
  /// While down, the server is unreachable and open watches are broken.
  void outage(bool down);
  void clear();
  void reseed(async::Random random) { random_ = random; }

  /// True if all rules with a number of times are used up.
  [[nodiscard]] bool script_exhausted() const { return unused().empty(); }
  /// The rules that are not used up, one per line: for a test's message.
  [[nodiscard]] std::string unused() const;

  /// The attributes of a request that rules match.
  struct Seen {
    std::string_view verb;
    std::string_view resource;
    std::string_view subresource;
    std::string_view ns;
    std::string_view name;
  };
  /// What happens to a request: decided once for each, by the HTTP frontend or the direct API.
  struct Decision {
    async::Duration latency{0};
    int status = 0;  // not 0: answer with this status
    std::optional<int> retry_after_seconds;
    bool reset_before = false;
    bool reset_after = false;
    bool compact = false;
    std::int64_t stale_versions = 0;
  };
  Decision decide(const Seen& request);
  /// What happens to a watch event.
  struct EventDecision {
    async::Duration latency{0};
    bool drop = false;
    bool cut = false;
  };
  EventDecision decide_event(const Seen& object);
  [[nodiscard]] bool empty() const { return rules_.empty(); }

 private:
  bool applies(FaultRule& rule, const Seen& seen);

  async::Random random_;
  std::deque<FaultRule> rules_;
  bool down_ = false;
};

}  // namespace hubferry::sim
