#include "app/status/status_watch.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "hubferry/migration/resource.hpp"
#include "migration_samples.hpp"
#include "sim/sim_test.hpp"

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using sim::Awaitable;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// A client of a server that can stop answering.
class DeafApi final : public kube::Api {
 public:
  explicit DeafApi(kube::Api& inner) : inner_(inner) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override { return inner_.call(std::move(request)); }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    if (is_dead) co_return error;
    co_return co_await inner_.list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    if (is_dead) co_return error;
    co_return co_await inner_.watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<kube::json::value>> get_path(std::string path) override {
    if (is_deaf) co_return error;
    co_return co_await inner_.get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return inner_.name(); }

  bool is_deaf = false;  // to the question whether it answers
  bool is_dead = false;  // to lists and watches
  kube::Error error{kube::ErrorKind::unreachable, 0, {}, "connection refused", std::nullopt};

 private:
  kube::Api& inner_;
};

/// A server with migrations, on virtual time.
class StatusWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto install = [&]() -> Awaitable<> {
      co_await api_.create(kube::resources::custom_resource_definitions, migration_definition());
    };
    loop_.run(install());
    loop_.run_ready();
    put("m", "");
  }

  void put(std::string name, std::string status) {
    auto write = [&]() -> Awaitable<> {
      auto created = co_await api_.create(migration::managed_cluster_migrations, migration_object(name, ""));
      EXPECT_TRUE(created);
      if (!status.empty()) co_await set_status(name, status);
    };
    loop_.run(write());
  }
  Awaitable<> set_status(std::string name, std::string status) {
    kube::json::object patch{{"status", kube::json::parse(status)}};
    auto written = co_await api_.merge_patch(migration::managed_cluster_migrations, {"default", name}, patch, "status");
    EXPECT_TRUE(written);
  }

  /// Watches while `script` runs; then the user presses Ctrl-C, unless the watch has ended by itself.
  int watch(StatusWatchOptions options, Terminal terminal, std::function<Awaitable<>()> script,
            kube::Api* other = nullptr) {
    int code = -1;
    auto everything = [&]() -> Awaitable<> {
      StatusWatch shown{other != nullptr ? *other : api_, options, env_, [terminal] { return terminal; }, out_};
      auto body = [&](async::TaskScope& scope) -> Awaitable<> {
        auto run_script = [](std::function<Awaitable<>()> steps, async::Event& stop) -> Awaitable<> {
          co_await steps();
          stop.set();
        };
        scope.spawn(run_script(script, stop_));
        code = co_await shown.run(stop_);
        scope.stop();
      };
      co_await async::with_scope(body);
    };
    loop_.run(everything());
    return code;
  }

  async::VirtualLoop loop_;
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  sim::Server server_{sim::Options{}, env_};
  kube::Api& api_ = server_.api();
  async::Event stop_;
  std::ostringstream out_;
};

const Terminal pipe_end{};
const Terminal screen{.interactive = true, .colour = false, .width = 100, .height = 40};

TEST_F(StatusWatchTest, WithoutATerminalEachChangeIsOneLine) {
  const auto script = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(5s);
    co_await set_status("m", registering_status);
    co_await loop_.clock().sleep_for(5s);
    co_await api_.remove(migration::managed_cluster_migrations, {"default", "m"});
    co_await loop_.clock().sleep_for(5s);
  };
  EXPECT_EQ(watch({}, pipe_end, script), 0);
  EXPECT_EQ(out_.str(),
            "2030-01-01T00:00:00Z default/m New 0/4: waiting for a manager: none has reconciled it yet\n"
            "2030-01-01T00:00:05Z default/m Registering 1/4, 1 failed: waiting for 2 clusters\n"
            "2030-01-01T00:00:10Z default/m was deleted\n");
}

// The informer retries in silence: without a word the last state would look like the present one.
TEST_F(StatusWatchTest, AServerThatDoesNotAnswerIsReportedAndSoIsItsReturn) {
  DeafApi deaf{api_};
  const auto script = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(7s);
    deaf.is_deaf = true;
    co_await loop_.clock().sleep_for(30s);
    deaf.is_deaf = false;
    co_await loop_.clock().sleep_for(10s);
  };
  EXPECT_EQ(watch({}, pipe_end, script, &deaf), 0);
  EXPECT_EQ(out_.str(),
            "2030-01-01T00:00:00Z default/m New 0/4: waiting for a manager: none has reconciled it yet\n"
            "2030-01-01T00:00:10Z the API server does not answer: connection refused\n"
            "2030-01-01T00:00:40Z the API server answers again\n");
}

// A script that waits for the end of a migration would wait for ever.
TEST_F(StatusWatchTest, AServerThatStaysAwayEndsTheWatchWithTheErrorOfTheOtherCommands) {
  DeafApi deaf{api_};
  const auto script = [&]() -> Awaitable<> {
    deaf.is_deaf = true;
    co_await loop_.clock().sleep_for(1h);
  };
  const auto begun = loop_.clock().now();
  try {
    watch({}, pipe_end, script, &deaf);
    ADD_FAILURE() << "it went on for " << async::format_duration(loop_.clock().now() - begun);
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string{error.what()},
              "cannot reach API server " + std::string{api_.name()} + ": connection refused");
  }
  EXPECT_EQ(loop_.clock().now() - begun, 5min + 5s);
  EXPECT_THAT(out_.str(), EndsWith("00:00:05Z the API server does not answer: connection refused\n"));
}

TEST_F(StatusWatchTest, ARejectedCredentialEndsTheWatchSooner) {
  DeafApi deaf{api_};
  deaf.error.kind = kube::ErrorKind::unauthorized;
  deaf.error.status = 401;
  const auto script = [&]() -> Awaitable<> {
    deaf.is_deaf = true;
    co_await loop_.clock().sleep_for(1h);
  };
  const auto begun = loop_.clock().now();
  EXPECT_THROW(watch({}, screen, script, &deaf), std::runtime_error);
  EXPECT_EQ(loop_.clock().now() - begun, 35s);
}

TEST_F(StatusWatchTest, OnATerminalTheLastLineSaysSinceWhenTheServerDoesNotAnswer) {
  DeafApi deaf{api_};
  const auto script = [&]() -> Awaitable<> {
    deaf.is_deaf = true;
    co_await loop_.clock().sleep_for(30s);
  };
  EXPECT_EQ(watch({}, screen, script, &deaf), 0);
  EXPECT_THAT(out_.str(), HasSubstr("The API server does not answer since 20s: connection refused"));
}

/// What a reader of a pipe has got.
class FlushedText : public std::stringbuf {
 public:
  std::string flushed;

 private:
  int sync() override {
    flushed = str();
    return 0;
  }
};

TEST_F(StatusWatchTest, AServerThatNeverAnswersIsReportedBeforeTheFirstList) {
  for (const auto& terminal : {pipe_end, screen}) {
    DeafApi deaf{api_};
    deaf.is_deaf = deaf.is_dead = true;
    FlushedText text;
    std::ostream& out = out_;
    auto* const before = out.rdbuf(&text);
    const auto script = [&]() -> Awaitable<> {
      co_await loop_.clock().sleep_for(7s);
      EXPECT_THAT(text.flushed, HasSubstr("he API server does not answer"));
      EXPECT_THAT(text.flushed, HasSubstr("connection refused"));
    };
    EXPECT_EQ(watch({}, terminal, script, &deaf), 0);
    EXPECT_THAT(text.str(), Not(HasSubstr("No migrations yet"))) << "nobody knows";
    out.rdbuf(before);
    stop_.reset();
  }
}

TEST_F(StatusWatchTest, UnchangedOutputIsNotRepeated) {
  const auto script = [&]() -> Awaitable<> {
    co_await set_status("m", registering_status);
    co_await loop_.clock().sleep_for(5s);
    co_await set_status("m", R"({"observedGeneration": 7})");
    co_await loop_.clock().sleep_for(5s);
  };
  EXPECT_EQ(watch({}, pipe_end, script), 0);
  EXPECT_EQ(out_.str(), "2030-01-01T00:00:00Z default/m Registering 1/4, 1 failed: waiting for 2 clusters\n");
}

// While it changes the picture must fit into the window; when it is left there for good, nothing may be missing.
TEST_F(StatusWatchTest, TheFinalOutputIsNotTruncated) {
  const auto script = [&]() -> Awaitable<> {
    co_await set_status("m", registering_status);
    co_await loop_.clock().sleep_for(5s);
    co_await set_status("m", completed_status);
    co_await loop_.clock().sleep_for(1h);
  };
  const Terminal tiny{.interactive = true, .colour = false, .width = 30, .height = 6};
  EXPECT_EQ(watch({.ns = "", .only = kube::Key{"default", "m"}, .output = "table", .namespaces = {}}, tiny, script), 0);
  const auto last = out_.str().substr(out_.str().rfind("\x1b[J"));
  EXPECT_THAT(last, AllOf(HasSubstr("Timeline (UTC)"), HasSubstr("[x] Completed"), Not(HasSubstr("more lines")),
                          Not(HasSubstr("…"))));
}

TEST_F(StatusWatchTest, RedrawsInPlaceOnATerminalAndUpdatesDurations) {
  const auto script = [&]() -> Awaitable<> {
    co_await set_status("m", registering_status);
    co_await loop_.clock().sleep_for(1min);
  };
  EXPECT_EQ(watch({}, screen, script), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\x1b[2A\r\x1b[J"), HasSubstr("1/4        59s")));
}

TEST_F(StatusWatchTest, FollowsOneMigrationUntilItIsCompleted) {
  put("other", "");
  const auto script = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(5s);
    co_await set_status("m", completed_status);
    co_await loop_.clock().sleep_for(1h);
    ADD_FAILURE() << "the watch should have ended by itself";
  };
  EXPECT_EQ(watch({.ns = "", .only = kube::Key{"default", "m"}, .output = "table", .namespaces = {}}, pipe_end, script),
            0);
  EXPECT_THAT(out_.str(), AllOf(EndsWith("default/m Completed 4/4: all is done\n"), Not(HasSubstr("other"))));
}

TEST_F(StatusWatchTest, AFailedOrDeletedMigrationEndsTheWatchWith1) {
  const auto fail = [&]() -> Awaitable<> {
    co_await set_status("m", failed_status);
    co_await loop_.clock().sleep_for(1h);
  };
  const StatusWatchOptions one{.ns = "", .only = kube::Key{"default", "m"}, .output = "table", .namespaces = {}};
  EXPECT_EQ(watch(one, screen, fail), 1);
  EXPECT_THAT(out_.str(), HasSubstr("Failed, took 70s"));

  put("gone", "");
  const auto remove = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(5s);
    co_await api_.remove(migration::managed_cluster_migrations, {"default", "gone"});
    co_await loop_.clock().sleep_for(1h);
  };
  EXPECT_EQ(
      watch({.ns = "", .only = kube::Key{"default", "gone"}, .output = "table", .namespaces = {}}, screen, remove), 1);
  EXPECT_THAT(out_.str(), EndsWith("Migration default/gone was deleted.\n"));
}

// With a short TTL the deletion may be seen before the end was drawn.
TEST_F(StatusWatchTest, AMigrationDeletedAfterItsEndKeepsItsResult) {
  const StatusWatchOptions one{.ns = "", .only = kube::Key{"default", "m"}, .output = "table", .namespaces = {}};
  const auto script = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(10ms);
    co_await set_status("m", completed_status);
    co_await loop_.clock().sleep_for(10ms);
    co_await api_.remove(migration::managed_cluster_migrations, {"default", "m"});
    co_await loop_.clock().sleep_for(1h);
  };
  EXPECT_EQ(watch(one, screen, script), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("[x] Completed"), Not(HasSubstr("was deleted"))));
}

// Between the creation of a migration and the watch somebody may delete it: no event would come.
TEST_F(StatusWatchTest, AMigrationThatIsGoneBeforeTheWatchBeginsEndsIt) {
  const auto nothing = [&]() -> Awaitable<> { co_await loop_.clock().sleep_for(1h); };
  const StatusWatchOptions one{.ns = "", .only = kube::Key{"default", "gone"}, .output = "table", .namespaces = {}};
  EXPECT_EQ(watch(one, pipe_end, nothing), 1);
  EXPECT_THAT(out_.str(), HasSubstr("default/gone was deleted"));
}

// The names of failed clusters beyond what fits into the status are in a ConfigMap, which is read when there are new
// ones.
TEST_F(StatusWatchTest, ShowsFailedClustersFromTheLedger) {
  const auto script = [&]() -> Awaitable<> {
    kube::json::object lists{{"metadata", kube::json::object{{"name", "m"}, {"namespace", "default"}}},
                             {"data", kube::json::object{{"failure", R"(["c4","c77"])"}}}};
    co_await api_.create(kube::resources::config_maps, lists);
    co_await set_status("m", registering_status);
    co_await loop_.clock().sleep_for(5s);
  };
  watch({.ns = "", .only = kube::Key{"default", "m"}, .output = "table", .namespaces = {}}, screen, script);
  EXPECT_THAT(out_.str(), HasSubstr("  c77"));
}

TEST_F(StatusWatchTest, JsonIsOneObjectPerLine) {
  const auto script = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(5s);
    co_await set_status("m", completed_status);
    co_await loop_.clock().sleep_for(5s);
  };
  watch({.ns = "", .only = {}, .output = "json", .namespaces = {}}, screen, script);
  std::istringstream lines{out_.str()};
  std::vector<std::string> phases;
  for (std::string line; std::getline(lines, line);)
    phases.emplace_back(kube::string_at(kube::json::parse(line).as_object(), {"status", "phase"}));
  EXPECT_THAT(phases, testing::ElementsAre("", "Completed"));
}

// Nobody is asked again and again: after the first list there is one watch.
TEST_F(StatusWatchTest, DoesNotPoll) {
  const auto script = [&]() -> Awaitable<> {
    co_await loop_.clock().sleep_for(1s);
    server_.forget_requests();
    co_await loop_.clock().sleep_for(2min);
  };
  watch({}, screen, script);
  EXPECT_TRUE(server_.requests().empty()) << server_.timeline();
}

}  // namespace
}  // namespace hubferry::app
