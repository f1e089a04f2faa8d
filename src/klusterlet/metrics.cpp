#include "hubferry/klusterlet/metrics.hpp"

namespace hubferry::klusterlet {

std::string_view to_string(LeaveReason reason) {
  switch (reason) {
    case LeaveReason::denied:
      return "denied";
    case LeaveReason::connection_lost:
      return "connection_lost";
    case LeaveReason::bootstrap_timeout:
      return "bootstrap_timeout";
    case LeaveReason::bootstrap_refused:
      return "bootstrap_refused";
    case LeaveReason::bootstrap_changed:
      return "bootstrap_changed";
    case LeaveReason::certificate_expired:
      return "certificate_expired";
    case LeaveReason::certificate_rejected:
      return "certificate_rejected";
    case LeaveReason::failed:
      return "failed";
  }
  return "failed";
}

AgentMetrics::AgentMetrics(obs::Metrics& metrics)
    : switches(metrics.counter_family("hubferry_klusterlet_switches_total",
                                      "Hubs that agents have left, by the reason why.", {"reason"})),
      time_to_available(metrics.histogram("hubferry_klusterlet_time_to_available_seconds",
                                          "From leaving a hub to being available on the next one.",
                                          obs::exponential_buckets(0.25, 2, 14))),
      heartbeats(metrics.counter_family("hubferry_klusterlet_heartbeats_total",
                                        "Renewals of the cluster's Lease, by what came of them.", {"result"})) {
  for (const auto reason : {LeaveReason::denied, LeaveReason::connection_lost, LeaveReason::bootstrap_timeout,
                            LeaveReason::bootstrap_refused, LeaveReason::bootstrap_changed,
                            LeaveReason::certificate_expired, LeaveReason::certificate_rejected, LeaveReason::failed})
    switches.with({to_string(reason)});
  for (const auto* result : {"ok", "failed"}) heartbeats.with({result});
}

}  // namespace hubferry::klusterlet
