#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/sim/faults.hpp"

namespace hubferry::sim {

/// Faults from a file: a YAML or JSON list of rules, each with one effect.
///
///   - {server: hub1, verb: update, resource: leases, times: 2, fail: 409}
///   - {verb: write, rate: 0.05, reset: after}
///   - {server: hub2, after: 100, times: 1, retryAfter: 5, fail: 503}
///   - {verb: list, always: true, delay: {uniform: [10ms, 200ms]}}
///   - {resource: managedclusters, rate: 0.01, watch: drop}
///
/// Matching: server, verb, resource, subresource, namespace, name (absent: all). Frequency: times N (default 1), rate
/// P, always true; after N skips the first ones. Effects: fail STATUS (with retryAfter SECONDS), delay TIME, reset
/// before|after, stale VERSIONS, watch drop|cut, delayEvent TIME, compact true. A TIME is "100ms",
/// {uniform: [least, most]} or {exponential: [least, mean]}.
class FaultScript {
 public:
  FaultScript() = default;
  /// Throws std::runtime_error that names the file, the rule and the field.
  static FaultScript parse(std::string_view text, const std::string& file);

  /// Adds the rules for this server to its faults, in order.
  void apply(const std::string& server, Faults& faults) const;
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  /// The servers named in rules.
  [[nodiscard]] std::vector<std::string> servers() const;

 private:
  struct Rule {
    std::string server;  // empty: all
    FaultTarget target;
    std::function<void(FaultRule&)> set;
  };
  std::vector<Rule> rules_;
};

}  // namespace hubferry::sim
