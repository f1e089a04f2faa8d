#include "phase/handler_metrics.hpp"

#include <algorithm>

namespace hubferry::phase {

namespace {

constexpr std::size_t most_handler_series = 500;

/// A handler that does not wait takes microseconds; to measure it would cost a tenth of the throughput.
constexpr std::chrono::milliseconds shortest_measured{1};

// From 10 ms to three quarters of an hour.
std::vector<double> handler_buckets() {
  return obs::exponential_buckets(0.01, 4, 10);
}

}  // namespace

HandlerMetrics::HandlerMetrics(const DefinitionBase& definition, const std::string& machine, obs::Metrics& metrics) {
  auto& durations =
      metrics.histogram_family("hubferry_phase_handler_duration_seconds",
                               "How long one run of a handler took. Runs below 1 ms that did not fail are not counted.",
                               {"machine", "phase", "handler"}, handler_buckets(), most_handler_series);
  auto& failures = metrics.counter_family("hubferry_phase_handler_failures_total",
                                          "Runs of handlers that failed: fatally, or to be retried.",
                                          {"machine", "phase", "handler", "fatal"}, 2 * most_handler_series);
  const auto add = [&](const Phase& phase, const HandlerNode& node) {
    series_.emplace(&node, Series{durations.with({machine, phase, node.name()}),
                                  failures.with({machine, phase, node.name(), "false"}),
                                  failures.with({machine, phase, node.name(), "true"})});
  };
  const std::function<void(const Phase&, const HandlerNode&)> add_tree = [&](const Phase& phase,
                                                                             const HandlerNode& node) {
    add(phase, node);
    if (node.components.size() > definition.component_limit()) return;
    for (const auto& component : node.components) add_tree(phase, component);
  };
  for (const auto& phase : definition.tables().in_order())
    if (const auto* root = definition.handler_for(phase)) add_tree(phase, *root);
}

void HandlerMetrics::observe(const HandlerNode& handler, const ReconcileState& result) const {
  const std::chrono::duration<double> took = *result.end_time - *result.start_time;
  if (took < shortest_measured && !result.failed) return;
  const auto found = series_.find(&handler);
  if (found == series_.end()) return;
  auto series = found->second;
  // The wall clock may have been set back meanwhile.
  series.duration.observe(std::max(0.0, took.count()));
  if (result.failed) (result.fatal ? series.fatal_failures : series.failures).increment();
}

}  // namespace hubferry::phase
