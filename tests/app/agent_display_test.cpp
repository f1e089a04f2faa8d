#include "app/commands/klusterlet_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/async/virtual_loop.hpp"
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
  std::string reason(const std::string& path) {
    auto request = get(path);
    request.query = {{"verbose", ""}};
    return health_.answer(request).body;
  }
  std::string metrics() { return obs::metrics_handler(metrics_)(get("/metrics")).body; }

  static klusterlet::AgentView at(std::string hub, std::optional<async::WallTime> certificate_expires = {}) {
    klusterlet::AgentView view;
    view.phase = "Joined";
    view.hub = std::move(hub);
    view.certificate_expires = certificate_expires;
    return view;
  }

  async::VirtualClock clock_{today};
  obs::Metrics metrics_;
  obs::Health health_;
};

TEST_F(AgentDisplayTest, HealthFailsFromTheMomentTheCertificateExpires) {
  AgentDisplay display{metrics_, health_, clock_};
  EXPECT_EQ(status("/healthz"), 200) << "no certificate yet: it cannot have expired";
  display.show(at("https://hub1", today + 1h));
  EXPECT_EQ(status("/healthz"), 200);
  clock_.skew_wall(1h - 1s);
  EXPECT_EQ(status("/healthz"), 200);
  clock_.skew_wall(1h);
  EXPECT_EQ(status("/healthz"), 500);
  EXPECT_THAT(reason("/livez/certificate"), HasSubstr("has expired"));
  display.show(at("https://hub1", today + 2h));
  EXPECT_EQ(status("/healthz"), 200) << "it was renewed";
}

TEST_F(AgentDisplayTest, HealthChecksOutliveTheAgent) {
  {
    AgentDisplay{metrics_, health_, clock_}.show(at("h", today));
  }
  EXPECT_EQ(status("/healthz"), 500);
}

// A rollout of agents must not stop because a hub is down.
TEST_F(AgentDisplayTest, ReadinessDoesNotDependOnTheHubs) {
  AgentDisplay display{metrics_, health_, clock_};
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
  AgentDisplay display{metrics_, health_, clock_};
  display.show(at("https://hub1", today));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_hub_info{server=\"https://hub1\"} 1"));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_certificate_expiry_timestamp_seconds 1.728e+09"));
  display.show(at("https://hub2"));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_hub_info{server=\"https://hub1\"} 0"));
  EXPECT_THAT(metrics(), HasSubstr("hubferry_klusterlet_hub_info{server=\"https://hub2\"} 1"));
}

}  // namespace
}  // namespace hubferry::app
