#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "app/cli/server_client.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/names.hpp"
#include "hubferry/sim/crds.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::app {
namespace {

using test::Process;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* relocator_yaml = R"(
apiVersion: hive.openshift.io/v1
kind: ClusterRelocator
metadata:
  name: r1
spec:
  kubeconfigSecretRef: {name: destination, namespace: default}
  clusterDeploymentSelector: {matchLabels: {hive-instance: hive2}}
)";

sim::CrdSelection kinds_of_hive() {
  sim::CrdSelection selection;
  for (const auto& definition : sim::crds())
    if (kube::string_at(definition, {"spec", "group"}) != "hive.openshift.io")
      selection.without.emplace_back(kube::string_at(definition, {"spec", "names", "kind"}));
  return selection;
}

/// `hubferry plan -f` and `hubferry status --relocators` as people start them, against two simulated hubs.
class RelocatorProcess : public testing::Test {
 protected:
  RelocatorProcess() {
    for (auto* hub : {&source_, &destination_})
      hub->run([](sim::Server& server, const kube::Env& env) {
        return sim::install_crds(server.api(), kinds_of_hive(), env);
      });
    create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})");
    create(kube::resources::secrets,
           R"({"metadata": {"name": "destination", "namespace": "default"}, "data": {"kubeconfig": ")" +
               kube::encode_base64(destination_.kubeconfig_for(sim::admin())) + R"("}})");
    for (const auto* name : {"c1", "c2"}) {
      const auto text = std::string{name};
      create(ocm::cluster_deployments, R"({"metadata": {"name": ")" + text +
                                           R"(", "namespace": "prod", "labels": {"hive-instance": "hive2"}},
                 "spec": {"baseDomain": "example.com", "installed": true, "pullSecretRef": {"name": ")" +
                                           text + R"(-pull"}}})");
      create(kube::resources::secrets,
             R"({"metadata": {"name": ")" + text + R"(-pull", "namespace": "prod"}, "data": {"a": "aHVudGVyMg=="}})");
    }
  }

  void create(const kube::Resource& kind, const std::string& text, sim::Served* on = nullptr) {
    ServerClient client{kube::load_kubeconfig(config_of(on == nullptr ? source_ : *on))};
    auto made = loop_.run(client.api().create(kind, boost::json::parse(text).as_object()));
    ASSERT_TRUE(made) << text << made.error();
  }
  std::string config_of(sim::Served& hub) {
    return directory_.write("kubeconfig", hub.kubeconfig_for(sim::admin())).string();
  }
  std::unique_ptr<Process> hubferry(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::hubferry_binary());
    arguments.push_back("--kubeconfig=" + config_of(source_));
    return std::make_unique<Process>(arguments);
  }
  std::unique_ptr<Process> plan(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"plan", "-f", directory_.write("relocator.yaml", relocator_yaml).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hubferry(arguments);
  }

  sim::Served source_;
  sim::Served destination_;
  test::TemporaryDirectory directory_;
  test::RealLoop loop_;
};

TEST_F(RelocatorProcess, APlanNamesWhatWouldMoveAndWhatIsInTheWayOnTheDestination) {
  const auto free = plan();
  EXPECT_EQ(free->wait(), 0) << free->err();
  EXPECT_THAT(free->out(), AllOf(HasSubstr("ClusterRelocator r1 matches 2 ClusterDeployments."),
                                 ContainsRegex("prod/c1 +1 +would move\n"), ContainsRegex("prod/c2 +1 +would move\n")));
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination_);
  create(kube::resources::secrets,
         R"({"metadata": {"name": "c2-pull", "namespace": "prod"}, "data": {"a": "b3RoZXI="}})", &destination_);
  const auto blocked = plan();
  EXPECT_EQ(blocked->wait(), 1);
  EXPECT_THAT(blocked->out(),
              AllOf(ContainsRegex("prod/c1 +1 +would move\n"),
                    ContainsRegex("prod/c2 +1 +MoveFailed: cannot copy Secret prod/c2-pull: the destination has one "
                                  "that differs and was not copied from this hub")));
  EXPECT_THAT(blocked->out() + blocked->err(), Not(HasSubstr("aHVudGVyMg")));
}

TEST_F(RelocatorProcess, APlanWithoutADestinationPromisesNothing) {
  destination_.on_loop([&] { destination_.server().outage(true); });
  const auto lost = plan();
  EXPECT_EQ(lost->wait(), 1);
  EXPECT_THAT(lost->out(),
              AllOf(HasSubstr("It cannot move any: NoConnection: "),
                    ContainsRegex("prod/c1 +1 +nothing is in the way on this hub"), Not(HasSubstr("would move"))));
}

TEST_F(RelocatorProcess, TheStatusListsRelocatorsAndShowsOne) {
  const auto none = hubferry({"status", "--relocators"});
  EXPECT_EQ(none->wait(), 0) << none->err();
  EXPECT_THAT(none->out(), HasSubstr("No relocators found."));
  create(relocator::cluster_relocators,
         R"({"metadata": {"name": "r1"}, "spec": {"kubeconfigSecretRef": {"name": "destination", "namespace":
             "default"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
  const auto all = hubferry({"status", "--relocators"});
  EXPECT_EQ(all->wait(), 0) << all->err();
  EXPECT_THAT(all->out(), AllOf(HasSubstr("NAME"), ContainsRegex("r1 .*hive-instance=hive2")));
  const auto one = hubferry({"status", "--relocators", "r1"});
  EXPECT_EQ(one->wait(), 0) << one->err();
  EXPECT_THAT(one->out(), AllOf(ContainsRegex("prod/c1 +waiting"), ContainsRegex("prod/c2 +waiting")));
  const auto other = hubferry({"status", "--relocators", "r2"});
  EXPECT_EQ(other->wait(), 1);
  EXPECT_THAT(other->err(), HasSubstr("no relocator 'r2' found"));
}

}  // namespace
}  // namespace hubferry::app
