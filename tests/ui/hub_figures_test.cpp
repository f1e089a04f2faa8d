#include "ui/hub_figures.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "hubferry/obs/metrics.hpp"

namespace hubferry::ui {
namespace {

using namespace std::chrono_literals;

TEST(HubFigures, RateAndLatencyAreThoseSinceTheLastLookWithoutWatches) {
  obs::Metrics metrics;
  auto& requests = metrics.counter_family("rest_client_requests_total", "Requests.", {"code", "method", "host"});
  auto& durations =
      metrics.histogram_family("rest_client_request_duration_seconds", "Durations.", {"verb", "host"}, {1, 10});
  metrics.gauge_family("hubferry_hub_reachable", "Reachable.", {"hub"}).with({"hub1"}).set(1);
  HubFigures figures;
  figures.name_host("hub1", "https://10.0.0.1:6443/prefix");
  async::TimePoint now{};
  requests.with({"200", "GET", "10.0.0.1:6443"}).increment(100);
  EXPECT_EQ(boost::json::serialize(figures.update(metrics.text(), now)), R"([{"name":"hub1","reachable":true}])");

  requests.with({"200", "GET", "10.0.0.1:6443"}).increment(20);
  requests.with({"503", "GET", "10.0.0.1:6443"}).increment(4);
  requests.with({"200", "GET", "elsewhere:443"}).increment(4);
  durations.with({"GET", "10.0.0.1:6443"}).observe(0.25);
  durations.with({"WATCH", "10.0.0.1:6443"}).observe(300);
  const auto hub = figures.update(metrics.text(), now + 2s).at(0).as_object();
  EXPECT_EQ(hub.at("requestsPerSecond"), 12.0);
  EXPECT_EQ(hub.at("errorsPerSecond"), 2.0);
  EXPECT_EQ(hub.at("latencyMs"), 250.0);
}

TEST(HubFigures, AHubThatDoesNotAnswerIsNotReachable) {
  HubFigures figures;
  const auto hubs = figures.update("hubferry_hub_reachable{hub=\"a\\\"b\"} 0\nhubferry_hub_reachable{hub=\n", {});
  EXPECT_EQ(boost::json::serialize(hubs), R"([{"name":"a\"b","reachable":false}])");
}

}  // namespace
}  // namespace hubferry::ui
