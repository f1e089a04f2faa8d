#include <gmock/gmock.h>

#include "hubferry/klusterlet/agent.hpp"

namespace hubferry::klusterlet::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

AgentOptions good_options() {
  AgentOptions options;
  options.cluster_name = "cluster1";
  options.agent_name = "agent";
  return options;
}

// Scenario 1.
TEST(AgentOptionsTest, MultipleHubsNeedAtLeastTwoBootstrapKubeconfigs) {
  EXPECT_THAT(bootstrap_problem(0, true).value_or(""), HasSubstr("at least two"));
  EXPECT_THAT(bootstrap_problem(1, true).value_or(""), HasSubstr("at least two"));
  EXPECT_FALSE(bootstrap_problem(2, true));
  EXPECT_TRUE(bootstrap_problem(0, false));
  EXPECT_FALSE(bootstrap_problem(1, false));
}

// Scenario 2.
TEST(AgentOptionsTest, ACertificateLifetimeIsAtLeastAnHourOrDecidedByTheHub) {
  auto options = good_options();
  options.certificate_lifetime = 3599s;
  EXPECT_THAT(options.problems(), ElementsAre(HasSubstr("3600")));
  options.certificate_lifetime = 3600s;
  EXPECT_THAT(options.problems(), IsEmpty());
  options.certificate_lifetime = 0s;
  EXPECT_THAT(options.problems(), IsEmpty());
}

// Scenario 3.
TEST(AgentOptionsTest, ExternalUrlsAreHttpsAndHealthChecksHaveAPeriod) {
  auto options = good_options();
  options.external_server_urls = {"https://api.example:6443", "http://api.example"};
  EXPECT_THAT(options.problems(), ElementsAre(HasSubstr("'http://api.example'")));
  options.external_server_urls = {"https://"};
  EXPECT_THAT(options.problems(), ElementsAre(HasSubstr("https://")));
  options.external_server_urls.clear();
  options.healthcheck_period = 0s;
  EXPECT_THAT(options.problems(), ElementsAre(HasSubstr("health check period")));
}

TEST(AgentOptionsTest, NamesMustFitIntoNamespacesAndCertificates) {
  for (const auto* name : {"", "Upper", "under_score", "-edge", "edge-", "dot.ted"}) {
    auto options = good_options();
    options.cluster_name = name;
    EXPECT_THAT(options.problems(), ElementsAre(HasSubstr("namespace"))) << name;
  }
  auto options = good_options();
  options.cluster_name = std::string(64, 'a');
  EXPECT_EQ(options.problems().size(), 1U);
  options.cluster_name = std::string(63, 'a');
  EXPECT_THAT(options.problems(), IsEmpty());
  options.agent_name = "a:b";
  EXPECT_THAT(options.problems(), ElementsAre(HasSubstr("':'")));
}

TEST(AgentOptionsTest, AllProblemsAreReportedAtOnce) {
  AgentOptions options;
  options.connection_timeout = 0s;
  EXPECT_EQ(options.problems().size(), 3U);
}

TEST(AgentOptionsTest, TheMachineCanBeDrawn) {
  const auto drawn = agent_diagram();
  for (const auto* phase : {"Selecting", "Bootstrapping", "Joined", "Leaving"}) EXPECT_THAT(drawn, HasSubstr(phase));
}

}  // namespace
}  // namespace hubferry::klusterlet::test
