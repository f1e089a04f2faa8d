#pragma once

#include "hubferry/obs/metrics.hpp"

namespace hubferry::klusterlet {

/// Why an agent left a hub: the label `reason`.
enum class LeaveReason {
  denied,                // hubAcceptsClient became false
  connection_lost,       // no heartbeat reached it for the connection timeout
  bootstrap_timeout,     // it did not complete our registration within the connection timeout
  bootstrap_refused,     // while registering, it took back our credential's rights or denied us
  bootstrap_changed,     // the bootstrap kubeconfig in use was edited or taken away
  certificate_expired,   // our certificate could not be renewed in time
  certificate_rejected,  // the hub did not take our certificate any more: a new one is asked for
  failed,                // something unexpected happened
};
std::string_view to_string(LeaveReason reason);

/// Shared by all agents of a process: no series per agent.
struct AgentMetrics {
  explicit AgentMetrics(obs::Metrics& metrics);

  obs::Family<obs::Counter>& switches;    // {reason}
  obs::Histogram& time_to_available;      // from leaving a hub to being available on the next one
  obs::Family<obs::Counter>& heartbeats;  // {result}
};

}  // namespace hubferry::klusterlet
