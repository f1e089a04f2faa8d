#include "migration_test.hpp"

/// The process crashes at every possible point, and its successor reaches the same end.
namespace hubferry::migration::test {
namespace {

/// An API that stops answering at its n-th write: before the write is sent, or after it was carried out.
class DyingApi final : public kube::Api {
 public:
  enum class Moment { before, after };

  DyingApi(kube::Api& real, async::Clock& clock) : real_(real), clock_(clock) {}

  void die_at(std::size_t write, Moment moment) {
    at_ = write;
    moment_ = moment;
    writes_ = 0;
    dead.reset();
  }
  [[nodiscard]] std::size_t writes() const { return writes_; }
  async::Event dead;

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    const bool fatal = request.verb != kube::Verb::get && request.resource.plural != "events" && ++writes_ == at_;
    if (fatal && moment_ == Moment::before) co_await die();
    auto answer = co_await real_.call(std::move(request));
    if (fatal) co_await die();
    co_return answer;
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions list_options,
                                               const kube::Decoder& decoder) override {
    return real_.list(std::move(resource), std::move(list_options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                    kube::WatchOptions watch_options,
                                                                    const kube::Decoder& decoder) override {
    return real_.watch(std::move(resource), std::move(watch_options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override { return real_.get_path(std::move(path)); }
  [[nodiscard]] std::string_view name() const override { return real_.name(); }

 private:
  Awaitable<> die() {
    dead.set();
    co_await clock_.sleep_until(async::never);
  }

  kube::Api& real_;
  async::Clock& clock_;
  std::size_t at_ = 0;
  std::size_t writes_ = 0;
  Moment moment_ = Moment::before;
};

class CrashTest : public MigrationTest {
 protected:
  kube::Api& api() override { return dying; }

  /// Lives until `dying` dies, or the migration has ended. True: it died.
  bool live_until_death(const std::string& name) {
    live([&]() -> Awaitable<> { co_await holds([&] { return dying.dead.is_set() || !exists(name) || ended(name); }); });
    return dying.dead.is_set();
  }
  bool ended(const std::string& name) { return phase(name) == "Completed" || phase(name) == "Failed"; }

  DyingApi dying{global.api(), loop.clock()};
};

struct Story {
  const char* name;
  std::function<void(FakeHubs&)> prepare;
  const char* ending;
  std::set<std::string> moved;
};

void PrintTo(const Story& story, std::ostream* out) {
  *out << story.name;
}

const kube::Error refused{kube::ErrorKind::invalid, 422, "Invalid", "something odd", {}};

std::vector<Story> stories() {
  return {{"AllIsWell", [](FakeHubs&) {}, "Completed", {"a", "b"}},
          {"OneCannotBeDeployed",
           [](FakeHubs& hubs) { hubs.faults["target.deploy b"] = {.error = refused}; },
           "Failed",
           {"a"}},
          {"OneDoesNotArrive", [](FakeHubs& hubs) { hubs.travel_times["b"] = 20min; }, "Failed", {"a"}},
          {"TheSourceRefuses",
           [](FakeHubs& hubs) { hubs.faults["source.initialize"] = {.error = FakeHubs::forbidden()}; },
           "Failed",
           {}}};
}

class CrashStoryTest : public CrashTest, public testing::WithParamInterface<Story> {
 protected:
  void expect_the_end() {
    const auto& story = GetParam();
    EXPECT_EQ(phase("m1"), story.ending);
    std::set<std::string> stayed{"a", "b", "c"};
    for (const auto& name : story.moved) stayed.erase(name);
    // A cluster that was rolled back may not be Available yet.
    live([&]() -> Awaitable<> { co_await sleep(1h); });
    expect_moved("m1", story.moved, stayed);
    EXPECT_EQ(clusters("m1", "migrated"), static_cast<std::int64_t>(story.moved.size()));
  }
  /// Resets everything to the start.
  void begin_anew() {
    if (exists("m1")) {
      loop.run(remove("m1"));
      live([&]() -> Awaitable<> { co_await vanishes("m1"); });
    }
    for (const auto* hub : {"hub1", "hub2"}) hubs.add(hub);
    for (const auto* name : {"a", "b", "c"}) hubs.add_cluster("hub1", name);
    hubs.faults.clear();
    hubs.travel_times.clear();
    GetParam().prepare(hubs);
    given("m1", {"a", "b"});
  }
};

TEST_P(CrashStoryTest, ACrashAtAnyWriteToTheGlobalHubChangesNothing) {
  begin_anew();
  dying.die_at(0, DyingApi::Moment::before);
  live_until_death("m1");
  const auto writes = dying.writes();
  EXPECT_GE(writes, 8u);
  expect_the_end();
  for (const auto moment : {DyingApi::Moment::before, DyingApi::Moment::after}) {
    for (std::size_t write = 1; write <= writes; ++write) {
      SCOPED_TRACE("write " + std::to_string(write) + (moment == DyingApi::Moment::after ? ", after" : ", before"));
      dying.die_at(0, moment);
      begin_anew();
      dying.die_at(write, moment);
      live_until_death("m1");
      dying.die_at(0, moment);
      live_until_death("m1");
      expect_the_end();
      if (HasFailure()) return;
    }
  }
}

TEST_P(CrashStoryTest, ACrashAtAnyHubOperationChangesNothing) {
  begin_anew();
  std::size_t count = 0;
  hubs.on_order = [&] { ++count; };
  live_until_death("m1");
  const auto orders = count;
  EXPECT_GE(orders, 8u);
  for (std::size_t order = 1; order <= orders; ++order) {
    SCOPED_TRACE("order " + std::to_string(order));
    hubs.on_order = {};
    begin_anew();
    count = 0;
    bool died = false;
    hubs.on_order = [&] { died = died || ++count == order; };
    live([&]() -> Awaitable<> { co_await holds([&] { return died || ended("m1"); }); });
    live_until_death("m1");
    expect_the_end();
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Stories, CrashStoryTest, testing::ValuesIn(stories()),
                         [](const auto& story) { return story.param.name; });

// The ledger says who returns before the status says so.
TEST_F(CrashTest, ACrashAtAnyWriteOfAReturnFromCleaningLosesNoCluster) {
  auto lose_a_cluster = [&] {
    dying.die_at(0, DyingApi::Moment::before);
    if (exists("m1")) {
      loop.run(remove("m1"));
      live([&]() -> Awaitable<> { co_await vanishes("m1"); });
    }
    for (const auto* hub : {"hub1", "hub2"}) hubs.add(hub);
    for (const auto* name : {"a", "b", "c"}) hubs.add_cluster("hub1", name);
    given("m1", {"a", "b"});
    live([&]() -> Awaitable<> {
      co_await reaches("m1", "Cleaning");
      hubs.hub("hub2").clusters.erase("b");
      co_await sleep(1h);
    });
    loop.run(annotate("m1", names::request_annotation, names::rollback_request));
  };
  auto expect_returned = [&] {
    EXPECT_EQ(phase("m1"), "Failed");
    EXPECT_EQ(available_on("hub1"), (std::set<std::string>{"b", "c"}));
    EXPECT_EQ(available_on("hub2"), (std::set<std::string>{"a"}));
    EXPECT_TRUE(hubs.hub("hub1").clusters.at("b").accepted);
    EXPECT_EQ(hubs.hub("hub1").clusters.at("b").migrating, "");
  };
  lose_a_cluster();
  dying.die_at(0, DyingApi::Moment::before);
  live_until_death("m1");
  const auto writes = dying.writes();
  EXPECT_GE(writes, 4u);
  expect_returned();
  for (const auto moment : {DyingApi::Moment::before, DyingApi::Moment::after}) {
    for (std::size_t write = 1; write <= writes; ++write) {
      SCOPED_TRACE("write " + std::to_string(write) + (moment == DyingApi::Moment::after ? ", after" : ", before"));
      lose_a_cluster();
      dying.die_at(write, moment);
      live_until_death("m1");
      dying.die_at(0, moment);
      live_until_death("m1");
      expect_returned();
      if (HasFailure()) return;
    }
  }
}

// A deposed leader may not know it yet: for a while two controllers work on the same migrations.
TEST_F(MigrationTest, TwoControllersAtOnceDoNoHarm) {
  given("m1", {"a", "b"});
  Controller other{global.api(), hubs, options, env};
  live([&]() -> Awaitable<> {
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(other.run());
      co_await reaches("m1", "Completed");
      scope.stop();
    };
    co_await async::with_scope(both);
  });
  expect_moved("m1", {"a", "b"}, {"c"});
}

TEST_F(MigrationTest, AnOutageOfTheGlobalHubOnlyDelays) {
  given("m1", {"a"});
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Deploying");
    global.outage(true);
    co_await sleep(3min);
    global.outage(false);
    co_await reaches("m1", "Completed");
  });
  expect_moved("m1", {"a"}, {"b", "c"});
}

TEST_F(MigrationTest, ServerErrorsAndConflictsOnlyDelay) {
  global.faults().on({"write"}).rate(0.2).fail(503);
  global.faults().on({.verb = "patch", .resource = "managedclustermigrations"}).rate(0.2).fail(409);
  global.faults().on({"write"}).rate(0.1).reset_after();
  auto make = [&]() -> Awaitable<> {
    global.faults().clear();
    co_await create("m1", {"a", "b"});
    global.faults().on({.verb = "patch"}).rate(0.2).fail(503);
    global.faults().on({.verb = "patch", .resource = "managedclustermigrations"}).rate(0.2).fail(409);
    global.faults().on({.verb = "write"}).rate(0.1).reset_after();
  };
  loop.run(make());
  live_until("m1", "Completed");
  expect_moved("m1", {"a", "b"}, {"c"});
}

}  // namespace
}  // namespace hubferry::migration::test
