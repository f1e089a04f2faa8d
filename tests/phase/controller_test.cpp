#include "hubferry/phase/controller.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::phase::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

const kube::Resource jobs{"example.com", "v1", "jobs", "Job"};

constexpr const char* sound_status = R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})";

/// What the handlers of these tests share.
struct Shop {
  std::vector<async::TimePoint> runs;  // of `work`
  std::function<Awaitable<ReconcileState>(Context<Shop>&, KubeResource&)> work;
};

class ControllerTest : public testing::Test {
 protected:
  using TestController = Controller<Shop, KubeResource>;

  ControllerTest() {
    create(kube::resources::namespaces, R"({"metadata": {"name": "default"}})");
    shop.work = [](Context<Shop>&, KubeResource&) -> Awaitable<ReconcileState> { co_return done(); };
  }

  void create(const kube::Resource& kind, const std::string& text) {
    auto made = loop.run(server.api().create(kind, json::parse(text).as_object()));
    EXPECT_TRUE(made || made.error().kind == kube::ErrorKind::already_exists) << made.error();
    loop.run_ready();
  }
  static std::string crd(const std::string& status, bool subresource = true) {
    return R"({"metadata": {"name": "jobs.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
               "names": {"plural": "jobs", "singular": "job", "kind": "Job", "listKind": "JobList"},
               "versions": [{"name": "v1", "served": true, "storage": true, )" +
           std::string{subresource ? R"("subresources": {"status": {}}, )" : ""} +
           R"("schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
              "x-kubernetes-preserve-unknown-fields": true}, "status": )" +
           status + "}}}}]}}";
  }
  void install() { create(kube::resources::custom_resource_definitions, crd(sound_status)); }
  void given(const std::string& name) {
    create(jobs, R"({"metadata": {"name": ")" + name + R"(", "namespace": "default"}})");
  }
  Awaitable<> annotate(std::string name, std::string value) {
    json::object patch{{"metadata", json::object{{"annotations", json::object{{"note", value}}}}}};
    auto patched = co_await server.api().merge_patch(jobs, {"default", name}, patch);
    EXPECT_TRUE(patched) << patched.error();
  }
  std::string phase(const std::string& name) {
    const auto job = server.object(jobs, {"default", name});
    return job ? std::string{job->string_at({"status", "phase"})} : "gone";
  }
  [[nodiscard]] std::vector<async::Duration> run_times() const {
    std::vector<async::Duration> times;
    for (const auto& at : shop.runs) times.push_back(at - shop.runs.front());
    return times;
  }

  static Awaitable<ReconcileState> work(Context<Shop>& context, KubeResource& job, const State&) {
    context->runs.push_back(context.clock().now());
    co_return co_await context->work(context, job);
  }
  static void define(TestController& controller) {
    auto& definition = controller.definition;
    definition.initial = "working";
    definition.terminals = {{"done", Ending::success}, {"failed", Ending::failure}};
    definition.normal = {{"working", "done"}};
    definition.error = {{"working", "failed"}};
    definition.handlers.emplace("working", Handler<Shop, KubeResource>::leaf({}, work));
  }

  /// Runs `script(controller)` beside a controller.
  template <typename Script>
  void live(Script script) {
    live(std::move(script), {.name = "job"}, [](TestController&) {});
  }
  template <typename Script, typename Configure>
  void live(Script script, ControllerOptions options, Configure configure) {
    TestController controller{server.api(), jobs, shop, env, std::move(options)};
    define(controller);
    configure(controller);
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(controller.run());
      co_await script(controller);
      scope.stop();
    };
    loop.run(async::with_scope(body));
  }
  Awaitable<> sleep(async::Duration span) { return loop.clock().sleep_for(span); }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  obs::LogCapture log{{.format = obs::LogFormat::text, .level = obs::Level::info, .clock = &loop.clock()}};
  const kube::Env env{loop.clock(), random, metrics, log.logger()};
  sim::Server server{sim::Options{}, {loop.clock(), random, metrics, obs::Logger{}}};
  Shop shop;
};

TEST_F(ControllerTest, WhatIsThereAndWhatComesIsBroughtToItsEnd) {
  install();
  given("old");
  live([&](TestController& controller) -> Awaitable<> {
    co_await controller.wait_synced();
    EXPECT_TRUE(controller.synced());
    co_await sleep(1s);
    EXPECT_EQ(controller.not_ready(), std::nullopt);
    EXPECT_EQ(phase("old"), "done");
    auto made = co_await server.api().create(
        jobs, json::parse(R"({"metadata": {"name": "new", "namespace": "default"}})").as_object());
    EXPECT_TRUE(made);
    co_await sleep(1s);
    EXPECT_EQ(phase("new"), "done");
  });
  EXPECT_TRUE(log.contains("job cache synced"));
}

// The status write comes back as a watch event: it must not start the handler before its time.
TEST_F(ControllerTest, ItsOwnStatusWritesDoNotBypassTheRequeueDelay) {
  install();
  given("one");
  shop.work = [&](Context<Shop>&, KubeResource& job) -> Awaitable<ReconcileState> {
    job.status["runs"] = shop.runs.size();
    co_return shop.runs.size() < 4 ? not_done(1min) : done();
  };
  live([&](TestController&) -> Awaitable<> { co_await sleep(10min); });
  EXPECT_THAT(run_times(), ElementsAre(0s, 1min, 2min, 3min));
  EXPECT_EQ(phase("one"), "done");
}

TEST_F(ControllerTest, SomebodyElsesChangeIsReconciledAtOnceAlsoIfItCameWhileTheMachineRan) {
  install();
  given("one");
  shop.work = [&](Context<Shop>& context, KubeResource& job) -> Awaitable<ReconcileState> {
    job.status["runs"] = shop.runs.size();
    co_await context.clock().sleep_for(10s);
    co_return job.object.annotation("note") == "go" ? done() : not_done(1h);
  };
  live([&](TestController&) -> Awaitable<> {
    co_await sleep(5s);
    co_await annotate("one", "wait");  // while it runs
    co_await sleep(1min);
    EXPECT_EQ(shop.runs.size(), 2u);
    co_await annotate("one", "go");  // while it waits to be entered again
    co_await sleep(1min);
  });
  EXPECT_EQ(phase("one"), "done");
  EXPECT_EQ(shop.runs.size(), 3u);
}

TEST_F(ControllerTest, AnEndedMachineIsLeftAloneUntilItIsAskedToResume) {
  install();
  given("one");
  live(
      [&](TestController&) -> Awaitable<> {
        co_await sleep(1min);
        EXPECT_EQ(phase("one"), "done");
        co_await annotate("one", "hello");
        co_await sleep(1min);
        EXPECT_EQ(shop.runs.size(), 1u);
        co_await annotate("one", "again");
        co_await sleep(1min);
        EXPECT_EQ(shop.runs.size(), 2u);
        EXPECT_EQ(phase("one"), "done");
      },
      {.name = "job"},
      [](TestController& controller) {
        const auto wanted = [](const KubeResource& job) {
          return job.object.annotation("note") == "again" && !job.status.contains("again");
        };
        const auto prepare = [](Shop&, KubeResource& job, async::WallTime) { job.status["again"] = true; };
        controller.definition.resumptions = {{"done", "working", "asked for", wanted, prepare}};
      });
}

TEST_F(ControllerTest, ChangesOfOwnedAndMappedKindsReconcileTheirResource) {
  install();
  given("one");
  shop.work = [&](Context<Shop>&, KubeResource&) -> Awaitable<ReconcileState> {
    co_return shop.runs.size() < 4 ? not_done(24h) : done();
  };
  live(
      [&](TestController&) -> Awaitable<> {
        co_await sleep(1min);
        EXPECT_EQ(shop.runs.size(), 1u);
        const auto owner = *server.object(jobs, {"default", "one"});
        auto owned = json::parse(R"({"metadata": {"name": "result", "namespace": "default"}})").as_object();
        EXPECT_TRUE(kube::set_owner(owned, jobs, owner));
        auto made = co_await server.api().create(kube::resources::config_maps, owned);
        EXPECT_TRUE(made);
        co_await sleep(1min);
        EXPECT_EQ(shop.runs.size(), 2u);
        auto secret = json::parse(R"({"metadata": {"name": "any", "namespace": "default", "labels": {"job": "one"}}})")
                          .as_object();
        made = co_await server.api().create(kube::resources::secrets, secret);
        EXPECT_TRUE(made);
        co_await sleep(1min);
        EXPECT_EQ(shop.runs.size(), 3u);
        auto removed = co_await server.api().remove(kube::resources::config_maps, {"default", "result"});
        EXPECT_TRUE(removed);
        co_await sleep(1min);
      },
      {.name = "job"},
      [](TestController& controller) {
        controller.owns(kube::resources::config_maps);
        const auto job_of = [](const kube::Object& secret) -> std::vector<Key> {
          return {{std::string{secret.ns()}, std::string{secret.label("job")}}};
        };
        controller.watches(kube::resources::secrets, job_of, "job");
      });
  EXPECT_EQ(phase("one"), "done");
}

TEST_F(ControllerTest, TheMachineOfADeletedResourceIsCancelled) {
  install();
  given("one");
  bool cancelled = false;
  shop.work = [&](Context<Shop>& context, KubeResource&) -> Awaitable<ReconcileState> {
    try {
      co_await context.clock().sleep_for(24h);
    } catch (const boost::system::system_error&) {
      cancelled = true;
      throw;
    }
    co_return done();
  };
  live([&](TestController&) -> Awaitable<> {
    co_await sleep(1min);
    auto removed = co_await server.api().remove(jobs, {"default", "one"});
    EXPECT_TRUE(removed);
    co_await sleep(1s);
    EXPECT_TRUE(cancelled);
  });
  EXPECT_EQ(shop.runs.size(), 1u);
}

TEST_F(ControllerTest, AControllerThatHandlesDeletionRunsItsHandlersAgainUnlessThePhaseSurvives) {
  install();
  for (const bool survives : {false, true}) {
    shop.runs.clear();
    const std::string name = survives ? "survivor" : "one";
    given(name);
    auto held = loop.run(kube::add_finalizer(server.api(), jobs, {"default", name}, "example.com/hold"));
    ASSERT_TRUE(held);
    shop.work = [&](Context<Shop>& context, KubeResource& job) -> Awaitable<ReconcileState> {
      if (job.object.is_being_deleted()) co_return go_to("failed");
      co_await context.clock().sleep_for(5min);
      co_return done();
    };
    live(
        [&](TestController&) -> Awaitable<> {
          co_await sleep(1min);
          auto removed = co_await server.api().remove(jobs, {"default", name});
          EXPECT_TRUE(removed);
          co_await sleep(10min);
        },
        {.name = "job", .deletion = Deletion::handle, .survives_deletion = [=](const Phase&) { return survives; }},
        [](TestController& controller) { controller.definition.forced = {{"working", "failed", "deleted"}}; });
    EXPECT_EQ(phase(name), survives ? "done" : "failed");
    EXPECT_EQ(shop.runs.size(), survives ? 1u : 2u);
  }
}

TEST_F(ControllerTest, ChangesAreSeenAndAPredecessorsWorkRestoredBeforeTheFirstMachine) {
  install();
  given("one");
  std::vector<std::string> story;
  shop.work = [&](Context<Shop>&, KubeResource&) -> Awaitable<ReconcileState> {
    story.emplace_back("work");
    co_return done();
  };
  live([&](TestController&) -> Awaitable<> { co_await sleep(1min); }, {.name = "job"},
       [&](TestController& controller) {
         controller.on_change = [&](const KubeResource* old, const KubeResource* now) {
           story.push_back((old == nullptr ? "-" : "old ") + std::string{now == nullptr ? "-" : "now " + now->phase()});
         };
         controller.before_start([&]() -> Awaitable<> {
           controller.for_each([&](KubeResource job) { story.push_back("restore " + std::string{job.object.name()}); });
           co_return;
         });
       });
  EXPECT_THAT(story, ElementsAre("-now ", "restore one", "work", "old now done"));
}

class UnusableKindTest : public ControllerTest {
 protected:
  void expect_waits_for_repair(const std::string& broken, const std::string& problem) {
    create(kube::resources::custom_resource_definitions, broken);
    given("one");
    obs::CheckState readiness{"unknown"};
    live(
        [&](TestController& controller) -> Awaitable<> {
          co_await sleep(1min);
          EXPECT_THAT(controller.not_ready(), Optional(HasSubstr(problem)));
          EXPECT_THAT(readiness.check()(), Optional(HasSubstr(problem)));
          EXPECT_TRUE(log.contains(problem));
          EXPECT_EQ(shop.runs.size(), 0u);
          auto repaired = json::parse(crd(sound_status)).as_object();
          const Key key{{}, "jobs.example.com"};
          json::object patch{{"spec", repaired["spec"]}};
          auto patched = co_await server.api().merge_patch(kube::resources::custom_resource_definitions, key, patch);
          EXPECT_TRUE(patched) << patched.error();
          co_await sleep(10min);
          EXPECT_EQ(readiness.check()(), std::nullopt);
        },
        {.name = "job", .readiness = &readiness}, [](TestController&) {});
    EXPECT_EQ(phase("one"), "done");
  }
};

TEST_F(UnusableKindTest, AMissingStatusSubresourceIsNamedInLogAndReadinessUntilItIsThere) {
  expect_waits_for_repair(crd(sound_status, false), "has no status subresource");
}

TEST_F(UnusableKindTest, ASchemaThatPrunesTheStateIsNamedInLogAndReadinessUntilItKeepsIt) {
  expect_waits_for_repair(crd(R"({"type": "object", "properties": {"phase": {"type": "string"}}})"),
                          "prunes status.state");
}

}  // namespace
}  // namespace hubferry::phase::test
