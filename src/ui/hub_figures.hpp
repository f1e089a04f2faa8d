#pragma once

#include <boost/json/array.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/clock.hpp"

namespace hubferry::ui {

/// What the process's own metrics say about its hubs: whether each answers, and the rate and latency of requests to it
/// since the call before.
/// Executor: one loop.
class HubFigures {
 public:
  /// `server`: the URL of the hub's API server. Requests to hosts without a name are not shown.
  void name_host(const std::string& hub, const std::string& server);

  /// `metrics`: in Prometheus' text format, as obs::Metrics::text() gives it. One object for each hub, by name:
  /// {"name", "reachable", "requestsPerSecond", "errorsPerSecond", "latencyMs"}; what is unknown is absent.
  boost::json::array update(std::string_view metrics, async::TimePoint now);

 private:
  struct Figures {
    std::optional<double> reachable;
    double requests = 0;
    double errors = 0;
    double answers = 0;  // without watches, whose answers take minutes
    double answer_seconds = 0;
  };

  [[nodiscard]] std::map<std::string, Figures> read(std::string_view metrics) const;

  std::map<std::string, std::string> hubs_by_host_;
  std::map<std::string, Figures> before_;
  async::TimePoint at_{};
};

}  // namespace hubferry::ui
