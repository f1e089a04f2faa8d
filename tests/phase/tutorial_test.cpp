#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <fstream>
#include <sstream>

#include "few_objects.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "tutorial.hpp"

namespace hubferry::phase::test {
namespace {

using namespace std::chrono_literals;

std::string content_of(const std::string& path) {
  std::ifstream file{path};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Tutorial, TheReadmeShowsTheCodeThatIsTested) {
  const auto code = content_of(PHASE_TUTORIAL);
  ASSERT_FALSE(code.empty());
  EXPECT_THAT(content_of(PHASE_README), testing::HasSubstr("```cpp\n" + code + "```\n"));
  EXPECT_LE(std::count(code.begin(), code.end(), '\n'), 60);
}

TEST(Tutorial, ItsControllerMakesABackup) {
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  const kube::Env env{loop.clock(), random, metrics, obs::Logger{}};
  FewObjects api;
  const Key key{"default", "nightly"};
  api.objects[key] =
      json::parse(R"({"metadata": {"name": "nightly", "namespace": "default", "uid": "u", "annotations": {},
                                                  "resourceVersion": "1"}, "spec": {"volumes": ["data", "logs"]}})")
          .as_object();
  BackupServices services;
  services.take_snapshot = [&](std::string volume) -> Awaitable<std::string> {
    co_await loop.clock().sleep_for(30s);
    co_return "snapshot-of-" + volume;
  };
  kube::WorkQueue queue{{.name = "backup", .controller = {}}, env};
  queue.add(key);

  auto world = [&]() -> Awaitable<> {
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(queue.run());
    scope.spawn(run_backup_controller(api, queue, services, env));
    co_await loop.clock().sleep_for(5min);
    EXPECT_EQ(api.objects[key]["status"].at("phase"), "Checking");
    api.objects[key]["metadata"].as_object()["annotations"].as_object()["example.com/approved"] = "yes";
    api.touch(key);
    co_await loop.clock().sleep_for(2min);
    scope.stop();
    co_await scope.join();
  };
  loop.run(world());
  const auto& status = api.objects[key]["status"];
  EXPECT_EQ(status.at("phase"), "Saved");
  EXPECT_EQ(status.at("snapshots"), json::parse(R"(["snapshot-of-data", "snapshot-of-logs"])"));
  // The first run, the checks' end, the copy's end: no write in five minutes of waiting.
  EXPECT_EQ(api.patches.size(), 3u);
}

}  // namespace
}  // namespace hubferry::phase::test
