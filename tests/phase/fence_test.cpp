#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "few_objects.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/phase/kube_store.hpp"
#include "hubferry/phase/machine.hpp"
#include "phase_test.hpp"

/// Two leaders and one resource.
namespace hubferry::phase::test {
namespace {

const kube::Resource gadgets{"example.com", "v1", "gadgets", "Gadget", true};

struct NoServices {};

class FakeFence final : public kube::Fence {
 public:
  FakeFence(std::string identity, std::int64_t number) : term{std::move(identity), number} {}
  [[nodiscard]] kube::LeaderEpoch epoch() const override { return term; }
  [[nodiscard]] async::TimePoint until() const override { return async::never; }
  [[nodiscard]] async::Duration least_time() const override { return {}; }
  Awaitable<bool> confirm() override { co_return has_lease; }
  Awaitable<bool> outrank(std::int64_t number) override {
    if (has_lease) term.number = number + 1;
    co_return has_lease;
  }

  kube::LeaderEpoch term;
  bool has_lease = true;
};

class FencedMachine : public testing::Test {
 protected:
  using Leaf = std::function<Awaitable<ReconcileState>(KubeResource&)>;

  void given(const std::string& status) {
    api.objects[key] = json::parse(R"({"apiVersion": "example.com/v1", "kind": "Gadget",
        "metadata": {"name": "one", "namespace": "default", "uid": "u1", "resourceVersion": "7"}})")
                           .as_object();
    api.objects[key]["status"] = json::parse(status);
  }
  /// What another leader writes.
  void other_writes(std::int64_t epoch, const std::string& phase) {
    auto& status = api.objects[key]["status"].as_object();
    status["phase"] = phase;
    kube::object_in(status, "state")["leader"] = json::object{{"epoch", epoch}, {"identity", "other"}};
    api.touch(key);
  }
  Reconciled reconcile(FakeFence& fence, Leaf leaf, async::Duration limit = std::chrono::minutes{1}) {
    KubeStoreOptions options;
    options.fence = &fence;
    KubeStore store{api, gadgets, options};
    DefaultDefinition<NoServices, KubeResource> definition;
    keep_in(definition, store);
    definition.initial = "work";
    definition.terminals = {{"success", Ending::success}, {"failed", Ending::failure}};
    definition.normal = {{"work", "success"}};
    definition.error = {{"work", "failed"}};
    definition.handlers.emplace("work", Handler<NoServices, KubeResource>::leaf(
                                            {}, [&](Context<NoServices>&, KubeResource& resource, const State&) {
                                              ++runs;
                                              return leaf(resource);
                                            }));
    definition.normalize();
    NoServices nothing;
    Machine<NoServices, KubeResource> machine{definition, nothing, {loop.clock(), random, metrics, obs::Logger{}}};
    Reconciled result;
    auto in_time = [&]() -> Awaitable<> {
      auto done = co_await async::before_deadline(loop.clock(), async::later(loop.clock().now(), limit),
                                                  machine.reconcile(key));
      if (done) result = std::move(*done);
    };
    loop.run(in_time());
    return result;
  }
  static Awaitable<ReconcileState> finish(KubeResource& resource) {
    resource.status["by"] = "me";
    co_return done();
  }
  std::string text(std::initializer_list<std::string_view> path) {
    return std::string{kube::Object{api.objects[key]}.string_at(path)};
  }
  std::int64_t epoch() {
    return kube::Object{api.objects[key]}.find({"status", "state", "leader", "epoch"})->as_int64();
  }

  const Key key{"default", "one"};
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  FewObjects api;
  int runs = 0;
};

TEST_F(FencedMachine, ANewLeaderClaimsTheResourceBeforeAHandlerRuns) {
  given(R"({"phase": "work", "state": {"leader": {"epoch": 2, "identity": "other"}}})");
  FakeFence fence{"me", 3};
  bool claimed = false;
  reconcile(fence, [&](KubeResource& resource) {
    claimed = text({"status", "state", "leader", "identity"}) == "me";
    return finish(resource);
  });
  EXPECT_TRUE(claimed);
  EXPECT_EQ(epoch(), 3);
  EXPECT_EQ(text({"status", "phase"}), "success");
}

TEST_F(FencedMachine, TheFirstWriteOfANewResourceClaimsItWithoutAnExtraOne) {
  given("{}");
  FakeFence fence{"me", 3};
  EXPECT_EQ(reconcile(fence, finish).writes, 1u);
  EXPECT_EQ(epoch(), 3);
}

TEST_F(FencedMachine, AnEndedMachineIsNotClaimed) {
  given(R"({"phase": "success", "state": {"leader": {"epoch": 2, "identity": "other"}}})");
  FakeFence fence{"me", 3};
  EXPECT_EQ(reconcile(fence, finish).outcome, Reconciled::Outcome::terminal);
  EXPECT_EQ(api.patches.size(), 0u);
}

// The paused leader wakes up inside its handler, and the other one has gone on.
TEST_F(FencedMachine, ADeposedLeaderDoesNotWriteOnTopOfItsSuccessor) {
  given(R"({"phase": "work", "state": {"leader": {"epoch": 3, "identity": "me"}}})");
  FakeFence fence{"me", 3};
  const auto result = reconcile(fence, [&](KubeResource& resource) {
    other_writes(4, "work");
    fence.has_lease = false;
    return finish(resource);
  });
  EXPECT_EQ(result.outcome, Reconciled::Outcome::again);
  EXPECT_EQ(text({"status", "by"}), "");
  EXPECT_EQ(text({"status", "phase"}), "work");
  EXPECT_EQ(epoch(), 4);
}

TEST_F(FencedMachine, ADeposedLeaderDoesNotEvenRunAHandler) {
  given(R"({"phase": "work", "state": {"leader": {"epoch": 4, "identity": "other"}}})");
  FakeFence fence{"me", 3};
  fence.has_lease = false;
  reconcile(fence, finish);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(api.patches.size(), 0u);
}

TEST_F(FencedMachine, ALeaderThatHoldsTheLeaseOutranksWhatIsRecorded) {
  given(R"({"phase": "work", "state": {"leader": {"epoch": 9, "identity": "other"}}})");
  FakeFence fence{"me", 0};
  reconcile(fence, finish);
  EXPECT_EQ(epoch(), 10);
  EXPECT_EQ(text({"status", "by"}), "me");
}

// A conflict with a person's change is no sign of another leader.
TEST_F(FencedMachine, ResultsAreKeptWhenSomebodyElseThanALeaderHasWritten) {
  given(R"({"phase": "work", "state": {"leader": {"epoch": 3, "identity": "me"}}})");
  FakeFence fence{"me", 3};
  reconcile(fence, [&](KubeResource& resource) {
    api.objects[key]["status"].as_object()["note"] = "by a person";
    api.touch(key);
    return finish(resource);
  });
  EXPECT_EQ(text({"status", "by"}), "me");
  EXPECT_EQ(text({"status", "note"}), "by a person");
  EXPECT_EQ(text({"status", "phase"}), "success");
}

}  // namespace
}  // namespace hubferry::phase::test
