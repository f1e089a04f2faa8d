#include "hubferry/obs/metrics_page.hpp"

#include "obs/http_message.hpp"

namespace hubferry::obs {

namespace {

bool prefers_open_metrics(const HttpRequest& request) {
  const double open_metrics = media_quality(request.accept, "application/openmetrics-text", "version=1.0.0");
  const double text = media_quality(request.accept, "text/plain", "version=0.0.4");
  // A client that takes anything gets what a person can read in any browser.
  return open_metrics > text;
}

}  // namespace

HttpHandler metrics_handler(const Metrics& metrics) {
  return [&metrics](const HttpRequest& request) -> HttpResponse {
    if (request.path != "/metrics") return HttpResponse::not_found("this server has /metrics");
    if (prefers_open_metrics(request))
      return {.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
              .body = metrics.open_metrics()};
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()};
  };
}

}  // namespace hubferry::obs
