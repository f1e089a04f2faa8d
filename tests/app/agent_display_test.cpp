#include "app/commands/klusterlet_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/obs/metrics_page.hpp"

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class AgentDisplayTest : public testing::Test {
 protected:
  static constexpr async::WallTime today{std::chrono::hours{24 * 20000}};

  static obs::HttpRequest get(std::string path) {
    obs::HttpRequest request;
    request.path = std::move(path);
    return request;
  }
  int status(const std::string& path) { return health_.answer(get(path)).status; }
  std::string metrics() { return obs::metrics_handler(metrics_)(get("/metrics")).body; }

  static klusterlet::AgentView at(std::string hub, std::optional<async::WallTime> certificate_expires = {}) {
    klusterlet::AgentView view;
    view.phase = "Joined";
    view.hub = std::move(hub);
    view.certificate_expires = certificate_expires;
    return view;
  }

  obs::Metrics metrics_;
  obs::Health health_;
};

// A restart would not help: the agent replaces its certificate itself, and by a wrong clock each one looks expired.
TEST_F(AgentDisplayTest, AnExpiredCertificateIsShownButIsNoReasonForARestart) {
  AgentDisplay display{metrics_, health_};
  display.show(at("https://hub1", today - 1h));
  EXPECT_EQ(status("/healthz"), 200);
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_certificate_expiry_timestamp_seconds 1727996400"));
}

// A rollout of agents must not stop because a hub is down.
TEST_F(AgentDisplayTest, ReadinessDoesNotDependOnTheHubs) {
  AgentDisplay display{metrics_, health_};
  EXPECT_EQ(status("/readyz"), 500);
  display.started();
  EXPECT_EQ(status("/readyz"), 200);
  auto nowhere = at("https://hub1");
  nowhere.phase = "Selecting";
  nowhere.problem = "both hubs deny us";
  display.show(nowhere);
  EXPECT_EQ(status("/readyz"), 200);
}

TEST_F(AgentDisplayTest, OnlyOneHubIsTheCurrentOne) {
  AgentDisplay display{metrics_, health_};
  display.show(at("https://hub1", today));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_hub_info{server=\"https://hub1\"} 1"));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_certificate_expiry_timestamp_seconds 1.728e+09"));
  display.show(at("https://hub2"));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_hub_info{server=\"https://hub1\"} 0"));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_hub_info{server=\"https://hub2\"} 1"));
}

}  // namespace
}  // namespace hubferry::app
