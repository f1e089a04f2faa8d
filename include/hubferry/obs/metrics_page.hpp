#pragma once

#include "hubferry/obs/http_types.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::obs {

/// Serves /metrics, as OpenMetrics or as Prometheus' text format, whichever the client prefers.
/// `metrics` must outlive the server.
HttpHandler metrics_handler(const Metrics& metrics);

}  // namespace hubferry::obs
