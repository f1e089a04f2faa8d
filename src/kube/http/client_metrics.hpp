#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::kube::http {

/// What one client counts, under the names that client-go's users know. Executor: the client's loop.
class ClientMetrics {
 public:
  ClientMetrics(obs::Metrics& metrics, std::string host);

  /// One attempt; status 0 when no answer came.
  void attempt(std::string_view method, std::string_view verb, int status, async::Duration took, std::size_t sent,
               std::size_t received);
  void retry(std::string_view verb, int status);
  void rate_limited(std::string_view verb, async::Duration waited);
  void lookup(async::Duration took);
  void skipped_object();
  /// Whether the server's certificate is verified.
  void verifies_tls(bool verifies);

 private:
  struct OfVerb {
    obs::Histogram* duration;
    obs::Histogram* request_size;
    obs::Histogram* response_size;
  };
  OfVerb& of_verb(std::string_view verb);

  std::string host_;
  obs::Family<obs::Counter>& requests_;
  obs::Family<obs::Counter>& retries_;
  obs::Family<obs::Histogram>& durations_;
  obs::Family<obs::Histogram>& request_sizes_;
  obs::Family<obs::Histogram>& response_sizes_;
  obs::Family<obs::Histogram>& rate_limiter_;
  obs::Histogram* lookups_;
  obs::Counter* skipped_objects_;
  obs::Gauge* unverified_tls_;
  // The series in use, so that a request need not look them up in the families. The keys are literals.
  std::map<std::string_view, OfVerb> verbs_;
  std::map<std::pair<int, std::string_view>, obs::Counter*> counted_;
};

}  // namespace hubferry::kube::http
