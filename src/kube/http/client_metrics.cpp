#include "kube/http/client_metrics.hpp"

namespace hubferry::kube::http {

namespace {

// A process talks to thousands of hubs, with a handful of verbs and codes each.
constexpr std::size_t max_series = 50'000;

const std::vector<double>& seconds_buckets() {
  static const std::vector<double> buckets{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
  return buckets;
}

const std::vector<double>& bytes_buckets() {
  static const std::vector<double> buckets{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
  return buckets;
}

double in_seconds(async::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string code_text(int status) {
  return status == 0 ? "<error>" : std::to_string(status);
}

}  // namespace

ClientMetrics::ClientMetrics(obs::Metrics& metrics, std::string host)
    : host_(std::move(host)),
      requests_(metrics.counter_family("rest_client_requests_total", "HTTP requests by status code, method and host.",
                                       {"code", "method", "host"}, max_series)),
      retries_(metrics.counter_family("rest_client_request_retries_total",
                                      "Repeated requests by the status code that caused it, verb and host.",
                                      {"code", "verb", "host"}, max_series)),
      durations_(metrics.histogram_family("rest_client_request_duration_seconds",
                                          "From sending a request to its whole answer, by verb and host.",
                                          {"verb", "host"}, seconds_buckets(), max_series)),
      request_sizes_(metrics.histogram_family("rest_client_request_size_bytes", "Size of requests by verb and host.",
                                              {"verb", "host"}, bytes_buckets(), max_series)),
      response_sizes_(metrics.histogram_family("rest_client_response_size_bytes", "Size of answers by verb and host.",
                                               {"verb", "host"}, bytes_buckets(), max_series)),
      rate_limiter_(metrics.histogram_family("rest_client_rate_limiter_duration_seconds",
                                             "Waiting for the client-side rate limit, by verb and host.",
                                             {"verb", "host"}, seconds_buckets(), max_series)),
      lookups_(&metrics
                    .histogram_family("rest_client_dns_resolution_duration_seconds",
                                      "Looking up the server's name, by host.", {"host"}, seconds_buckets(), max_series)
                    .with({host_})),
      skipped_objects_(&metrics
                            .counter_family("hubferry_client_skipped_objects_total",
                                            "Objects left out of lists and watches because they cannot be decoded.",
                                            {"host"}, max_series)
                            .with({host_})),
      unverified_tls_(&metrics
                           .gauge_family("hubferry_client_unverified_tls",
                                         "1 for a server whose certificate is not verified, by host.", {"host"},
                                         max_series)
                           .with({host_})) {
  // So that the series exists before the first retry.
  retries_.with({code_text(0), "GET", host_});
}

ClientMetrics::OfVerb& ClientMetrics::of_verb(std::string_view verb) {
  const auto known = verbs_.find(verb);
  if (known != verbs_.end()) return known->second;
  const OfVerb series{&durations_.with({verb, host_}), &request_sizes_.with({verb, host_}),
                      &response_sizes_.with({verb, host_})};
  return verbs_.emplace(verb, series).first->second;
}

void ClientMetrics::attempt(std::string_view method, std::string_view verb, int status, async::Duration took,
                            std::size_t sent, std::size_t received) {
  auto& counter = counted_[{status, method}];
  if (counter == nullptr) counter = &requests_.with({code_text(status), method, host_});
  counter->increment();
  auto& series = of_verb(verb);
  series.duration->observe(in_seconds(took));
  series.request_size->observe(static_cast<double>(sent));
  series.response_size->observe(static_cast<double>(received));
}

void ClientMetrics::retry(std::string_view verb, int status) {
  retries_.with({code_text(status), verb, host_}).increment();
}

void ClientMetrics::rate_limited(std::string_view verb, async::Duration waited) {
  rate_limiter_.with({verb, host_}).observe(in_seconds(waited));
}

void ClientMetrics::lookup(async::Duration took) {
  lookups_->observe(in_seconds(took));
}

void ClientMetrics::verifies_tls(bool verifies) {
  unverified_tls_->set(verifies ? 0 : 1);
}

void ClientMetrics::skipped_object() {
  skipped_objects_->increment();
}

}  // namespace hubferry::kube::http
