#include "move_to_vpc.hpp"

#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/phase/machine.hpp"
#include "hubferry/phase/render.hpp"

namespace hubferry::phase::test {
namespace {

using namespace std::chrono_literals;

class MoveToVpcTest : public testing::Test {
 protected:
  MoveToVpcTest() {
    cloud.secrets["secret"] = "42";
    cloud.networks["vpc-a"] = {"42", "10.0.0.0/16", {"10.0.0.1", "10.0.0.2"}};
    cloud.networks["vpc-b"] = {"42", "10.0.0.0/16", {}};
    cloud.instances["ins-1"] = {"vpc-a", "10.0.0.1", true, {"ins-1-eni"}, "1.2.3.4"};
    cloud.instances["ins-2"] = {"vpc-a", "10.0.0.2", true, {"ins-2-eni"}, ""};
    auto& move = resources[key];
    move.spec = {"42", "secret", "vpc-a", "vpc-b", {}, false};
  }

  Reconciled reconcile_for(async::Duration span) {
    const auto until = loop.clock().now() + span;
    Reconciled result;
    while (loop.clock().now() < until) {
      result = loop.run(machine.reconcile(key));
      if (result.outcome != Reconciled::Outcome::again) break;
      loop.run_for(result.after);
    }
    return result;
  }
  MoveToVpc& move() { return resources[key]; }

  const Key key{"default", "move"};
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  Cloud cloud;
  std::map<Key, MoveToVpc> resources;
  MoveToVpcServices services{cloud, resources};
  MoveToVpcDefinition definition = move_to_vpc_definition(key);
  Machine<MoveToVpcServices, MoveToVpc> machine{definition, services, {loop.clock(), random, metrics, obs::Logger{}}};
};

TEST_F(MoveToVpcTest, MovesAllInstancesAndKeepsTheirAddresses) {
  EXPECT_EQ(reconcile_for(1h).phase, "Succeeded");
  for (const auto* id : {"ins-1", "ins-2"}) {
    EXPECT_EQ(cloud.instances[id].vpc, "vpc-b");
    EXPECT_EQ(cloud.instances[id].interfaces, std::vector{std::string{id} + "-eni-clone"});
    EXPECT_EQ(move().status.progress[id], "bindEIPs");
  }
  EXPECT_EQ(cloud.instances["ins-1"].public_ip, "1.2.3.4");
  EXPECT_EQ(cloud.networks["vpc-b"].used_ips, (std::set<std::string>{"10.0.0.1", "10.0.0.2"}));
  EXPECT_TRUE(move().status.state["InFlight"].component("cloneENIs").extra.contains("objects"));
}

TEST_F(MoveToVpcTest, WaitsForAPersonsWordWhereAsked) {
  move().spec.manually_confirm = true;
  EXPECT_EQ(reconcile_for(1h).outcome, Reconciled::Outcome::again);
  EXPECT_EQ(move().status.phase, "InFlight");
  EXPECT_TRUE(move().status.state["InFlight"].component("cloneENIs").never_ran());
  EXPECT_EQ(cloud.instances["ins-1"].vpc, "vpc-a");
  move().status.confirmed = true;
  EXPECT_EQ(reconcile_for(1h).phase, "Succeeded");
}

TEST_F(MoveToVpcTest, AllChecksRunAtOnce) {
  move().spec.manually_confirm = true;
  loop.run(machine.reconcile(key));
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 400ms);
}

TEST_F(MoveToVpcTest, AFailedCheckEndsBeforeAnythingIsTouched) {
  cloud.networks["vpc-b"].used_ips.insert("10.0.0.2");
  EXPECT_EQ(reconcile_for(1h).phase, "PreFailed");
  const auto& network = move().status.state["PreFlight"].component("prechkNetwork");
  EXPECT_EQ(network.component("prechkIPsNotOccupied").error, "the address of ins-2 is taken");
  EXPECT_EQ(cloud.instances["ins-1"].vpc, "vpc-a");
}

TEST_F(MoveToVpcTest, NothingToMoveIsAFailureOfItsOwn) {
  cloud.instances.clear();
  EXPECT_EQ(reconcile_for(1h).phase, "InitializeFailed");
}

TEST_F(MoveToVpcTest, BadWeatherIsWaitedOut) {
  cloud.flaky_calls = 9;
  EXPECT_EQ(reconcile_for(2h).phase, "Succeeded");
}

// Each step has a checkpoint: a process that dies in the middle repeats only the step it was in.
TEST_F(MoveToVpcTest, FinishedStepsAreNotRepeatedByASuccessor) {
  int lives = 0;
  for (; lives < 200; ++lives) {
    bool ended = false;
    Machine<MoveToVpcServices, MoveToVpc> successor{
        definition, services, {loop.clock(), random, metrics, obs::Logger{}}};
    auto life = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      auto run = [&]() -> Awaitable<> {
        const auto result = co_await successor.reconcile(key);
        ended = result.outcome == Reconciled::Outcome::terminal;
        scope.stop();
      };
      auto kill = [&]() -> Awaitable<> {
        co_await loop.clock().sleep_for(900ms);
        scope.stop();
      };
      scope.spawn(run());
      scope.spawn(kill());
      co_await scope.join();
    };
    loop.run(life());
    if (ended) break;
  }
  EXPECT_LT(lives, 200);
  EXPECT_EQ(move().status.phase, "Succeeded");
  EXPECT_EQ(std::count(cloud.calls.begin(), cloud.calls.end(), "cloneENIs ins-1"), 1);
}

TEST_F(MoveToVpcTest, ShowsItsProgress) {
  move().spec.manually_confirm = true;
  loop.run(machine.reconcile(key));
  const auto progress = progress_of(definition, move());
  EXPECT_EQ(render_checklist(definition, progress),
            "[x] Initializing: collect what is to be moved (0s)\n"
            "[x] PreFlight: pre-flight checks (0s)\n"
            "  [x] prechkAccount: the account (0s)\n"
            "    [x] prechkSecretAppId: the secret is the account's (0s)\n"
            "  [x] prechkInstance: the instances (0s)\n"
            "    [x] prechkInsStateRunning: all instances exist and run (0s)\n"
            "    [x] prechkInsInSrcVpc: all instances are in the source (0s)\n"
            "  [x] prechkNetwork: the networks (0s)\n"
            "    [x] prechkVpcAppId: both networks are the account's (0s)\n"
            "    [x] prechkCIDR: the address ranges agree (0s)\n"
            "    [x] prechkIPsNotOccupied: all addresses are free in the target (0s)\n"
            "[>] InFlight: the move\n"
            "  [>] pause: wait for a person's word\n"
            "  [ ] cloneENIs: clone the network interfaces\n"
            "  [ ] detachENIs: detach the network interfaces\n"
            "  [ ] migrateInstances: change the network\n"
            "  [ ] attachENIs: attach the clones\n"
            "  [ ] unbindEIPs: unbind public addresses\n"
            "  [ ] bindEIPs: bind public addresses\n");
  const auto rendered = render_json(definition, progress, &move());
  EXPECT_THAT(json::serialize(rendered), testing::HasSubstr(R"("detail":[{"instance":"ins-1","step":""})"));
}

}  // namespace
}  // namespace hubferry::phase::test
