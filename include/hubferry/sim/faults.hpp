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

/// How long something takes: drawn from a distribution, never below zero.
struct Latency {
  enum class Shape { fixed, uniform, exponential };
  Shape shape = Shape::fixed;
  async::Duration low{0};   // fixed: the value; exponential: the least
  async::Duration high{0};  // uniform: the most; exponential: the mean above the least

  static Latency fixed(async::Duration value) { return {Shape::fixed, value, value}; }
  static Latency uniform(async::Duration low, async::Duration high) { return {Shape::uniform, low, high}; }
  static Latency exponential(async::Duration least, async::Duration mean) { return {Shape::exponential, least, mean}; }

  [[nodiscard]] async::Duration draw(async::Random& random) const;
};

/// Which requests a rule concerns. Empty members match everything.
struct FaultTarget {
  /// get, list, watch, create, update, patch, apply, delete; or "read", "write" for all of a sort.
  std::string verb = {};
  std::string resource = {};  // plural
  std::string subresource = {};
  std::string ns = {};
  std::string name = {};
};

/// One thing that goes wrong, how often, and for whom. Made by Faults::on(); each sets one effect:
///   faults.on({"update", "leases"}).times(2).fail(409);
///   faults.on({"write"}).rate(0.05).reset_after();
class FaultRule {
 public:
  /// The next `count` matching requests (default: 1). A scenario has run to its end when all such rules are used up.
  FaultRule& times(std::uint64_t count);
  /// Each matching request with this probability, for ever.
  FaultRule& rate(double probability);
  FaultRule& always() { return rate(1.0); }
  /// Lets the first `count` matching requests pass.
  FaultRule& after(std::uint64_t count);

  /// Answers with this HTTP status without touching the store.
  FaultRule& fail(int status, std::optional<int> retry_after_seconds = std::nullopt);
  /// The request takes this much longer.
  FaultRule& delay(Latency latency);
  /// The connection breaks before the server saw the request: unreachable.
  FaultRule& reset_before();
  /// The connection breaks after the request took effect: a write is ambiguous then.
  FaultRule& reset_after();
  /// Lists answer from this many versions ago.
  FaultRule& stale(std::int64_t versions);
  /// The watch loses the event (a bug that servers have had).
  FaultRule& drop_event();
  FaultRule& delay_event(Latency latency);
  /// The watch breaks off at the event; it is not delivered.
  FaultRule& cut_watch();
  /// The server forgets its history before it serves the request.
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

/// What goes wrong on one server. Deterministic: the same seed and the same requests give the same faults.
/// Executor: the server's.
class Faults {
 public:
  explicit Faults(async::Random random) : random_(random) {}

  /// A new rule, asked after those before it. The reference is good until clear().
  FaultRule& on(FaultTarget target);
  /// From now on nobody reaches the server, and open watches break; until told otherwise.
  void outage(bool down);
  [[nodiscard]] bool is_down() const { return down_; }
  void clear();

  /// Have all rules with a number of times been used up?
  [[nodiscard]] bool script_exhausted() const { return unused().empty(); }
  /// The rules that still wait, one a line: for a test's message.
  [[nodiscard]] std::string unused() const;

  /// One request as rules see it.
  struct Seen {
    std::string_view verb;
    std::string_view resource;
    std::string_view subresource;
    std::string_view ns;
    std::string_view name;
  };
  /// What shall happen to a request: asked once for each, by the frontend or the direct API.
  struct Decision {
    async::Duration latency{0};
    int status = 0;  // not 0: answer this
    std::optional<int> retry_after_seconds;
    bool reset_before = false;
    bool reset_after = false;
    bool compact = false;
    std::int64_t stale_versions = 0;
  };
  Decision decide(const Seen& request);
  /// What shall happen to a watch event.
  struct EventDecision {
    async::Duration latency{0};
    bool drop = false;
    bool cut = false;
  };
  EventDecision decide_event(const Seen& object);
  [[nodiscard]] bool empty() const { return rules_.empty(); }

 private:
  bool strikes(FaultRule& rule, const Seen& seen);

  async::Random random_;
  std::deque<FaultRule> rules_;
  bool down_ = false;
};

}  // namespace hubferry::sim
