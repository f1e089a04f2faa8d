#pragma once

#include <unordered_map>

#include "hubferry/kube/env.hpp"
#include "hubferry/phase/definition.hpp"

namespace hubferry::phase {

/// How long handlers run, and how often they fail:
///   hubferry_phase_handler_duration_seconds{machine, phase, handler}
///   hubferry_phase_handler_failures_total{machine, phase, handler, fatal}
/// Labels are bounded by the definition; components of composites beyond its component limit are not measured one by
/// one. Looked up once per definition: handlers run by the ten thousand a second.
class HandlerMetrics {
 public:
  HandlerMetrics(const DefinitionBase& definition, const std::string& machine, obs::Metrics& metrics);

  /// One run of the handler has ended by itself.
  void observe(const HandlerNode& handler, const ReconcileState& result) const;

 private:
  struct Series {
    obs::Histogram duration;
    obs::Counter failures;
    obs::Counter fatal_failures;
  };
  std::unordered_map<const HandlerNode*, Series> series_;
};

}  // namespace hubferry::phase
