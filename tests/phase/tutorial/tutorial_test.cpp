#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <fstream>
#include <regex>
#include <sstream>

#include "backup.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/yaml.hpp"
#include "hubferry/sim/server.hpp"
#include "sim/sim_process.hpp"

namespace hubferry::phase::test {
namespace {

using namespace std::chrono_literals;
using hubferry::test::Process;
using testing::HasSubstr;

const kube::Resource backups{"example.com", "v1", "backups", "Backup"};

std::string content_of(const std::string& name) {
  std::ifstream file{PHASE_TUTORIAL + ("/" + name)};
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

/// Lines of code: neither empty nor an include.
long code_lines(const std::string& code) {
  std::istringstream lines{code};
  long count = 0;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("#include")) ++count;
  return count;
}

TEST(Tutorial, TheReadmeShowsTheCodeThatIsTested) {
  std::ifstream file{PHASE_README};
  std::stringstream readme;
  readme << file.rdbuf();
  for (const auto* name : {"backup.cpp", "controller.cpp", "main.cpp"})
    EXPECT_THAT(readme.str(), HasSubstr("```cpp\n" + content_of(name) + "```\n")) << name;
  EXPECT_THAT(readme.str(), HasSubstr("```yaml\n" + content_of("crd.yaml") + "```\n"));
  const auto definition = content_of("backup.cpp");
  EXPECT_LE(std::count(definition.begin(), definition.end(), '\n'), 60);
}

TEST(Tutorial, ANewControllerNeedsAtMostFortyLinesOfWiring) {
  EXPECT_LE(code_lines(content_of("controller.cpp")) + code_lines(content_of("main.cpp")), 40);
}

/// The tutorial's controller beside a simulated server, on virtual time.
class TutorialTest : public testing::Test {
 protected:
  TutorialTest() {
    services.take_snapshot = [this](std::string volume) -> Awaitable<std::string> {
      co_await loop.clock().sleep_for(30s);
      co_return "snapshot-of-" + volume;
    };
    create(kube::resources::custom_resource_definitions,
           kube::parse_yaml_documents(content_of("crd.yaml"), "crd.yaml").at(0).as_object());
    create(kube::resources::namespaces, json::parse(R"({"metadata": {"name": "default"}})").as_object());
    loop.run_ready();
    create(backups, json::parse(R"({"metadata": {"name": "nightly", "namespace": "default"},
                                    "spec": {"volumes": ["data", "logs"]}})")
                        .as_object());
  }

  void create(const kube::Resource& kind, json::object object) {
    auto made = loop.run(server.api().create(kind, std::move(object)));
    EXPECT_TRUE(made || made.error().kind == kube::ErrorKind::already_exists) << made.error();
  }
  Awaitable<> approve() {
    json::object annotations{{"example.com/approved", "yes"}};
    json::object patch{{"metadata", json::object{{"annotations", annotations}}}};
    auto patched = co_await server.api().merge_patch(backups, key, patch);
    EXPECT_TRUE(patched) << patched.error();
  }
  json::value status() { return *server.object(backups, key)->find({"status"}); }
  std::size_t status_writes() {
    std::size_t writes = 0;
    for (const auto& request : server.requests())
      if (request.resource == "backups.example.com" && request.subresource == "status") ++writes;
    return writes;
  }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  const kube::Env env{loop.clock(), random, metrics, obs::Logger{}};
  sim::Server server{sim::Options{}, env};
  BackupServices services;
  const Key key{"default", "nightly"};
};

TEST_F(TutorialTest, ItsControllerMakesABackup) {
  auto world = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(run_backup_controller(server.api(), services, env));
    co_await loop.clock().sleep_for(5min);
    EXPECT_EQ(status().at("phase"), "Checking");
    co_await approve();
    co_await loop.clock().sleep_for(2min);
    scope.stop();
  };
  loop.run(async::with_scope(world));
  EXPECT_EQ(status().at("phase"), "Saved");
  EXPECT_EQ(status().at("snapshots"), json::parse(R"(["snapshot-of-data", "snapshot-of-logs"])"));
  EXPECT_EQ(status().at("conditions").at(0).at("type"), "Saved");
  // The first run, the checks' end, the copy's end: no write in five minutes of waiting.
  EXPECT_EQ(status_writes(), 3u);
}

TEST_F(TutorialTest, OneOfTwoLeadsAndTheOtherTakesOver) {
  auto world = [&](async::TaskScope& scope) -> Awaitable<> {
    auto* const first = scope.spawn(run_backup_controller(server.api(), services, env));
    co_await loop.clock().sleep_for(1min);
    scope.spawn(run_backup_controller(server.api(), services, env));
    co_await loop.clock().sleep_for(1min);
    scope.stop(*first);
    co_await approve();
    co_await loop.clock().sleep_for(2min);
    scope.stop();
  };
  loop.run(async::with_scope(world));
  EXPECT_EQ(status().at("phase"), "Saved");
}

// The program itself, over HTTP, with its CRD.
TEST(TutorialProgram, BacksUpAgainstASimulatedHub) {
  hubferry::test::SimProcess sim{{"--hubs", "hub1", "--clusters", "0"}};
  const auto kubeconfig = sim.kubeconfig("hub1");
  hubferry::test::TemporaryDirectory home;
  const auto kubectl = [&](const std::string& words) {
    const auto ran = hubferry::test::run_kubectl(kubeconfig, home.path(), words);
    EXPECT_EQ(ran.code, 0) << words << "\n" << ran.output;
    return ran.output;
  };
  kubectl("apply -f " PHASE_TUTORIAL "/crd.yaml");
  kubectl("wait --for=condition=Established crd/backups.example.com --timeout=60s");
  const auto file = home.write("nightly.yaml",
                               "apiVersion: example.com/v1\nkind: Backup\n"
                               "metadata: {name: nightly, namespace: default}\n"
                               "spec: {volumes: [data, logs]}\n");
  kubectl("apply -f " + file.string());

  // Debian's kubectl does not know `wait --for=jsonpath` yet.
  const auto wait_for_phase = [&](const std::string& phase) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    std::string now;
    while (now != phase && std::chrono::steady_clock::now() < deadline)
      now = kubectl("get backup nightly -o jsonpath='{.status.phase}'");
    EXPECT_EQ(now, phase);
  };

  Process program{{PHASE_TUTORIAL_PROGRAM, kubeconfig}};
  program.await_error_text("backup cache synced");
  wait_for_phase("Checking");
  EXPECT_NE(kubectl("get lease backup-controller -o jsonpath='{.spec.holderIdentity}'"), "");
  kubectl("annotate backup nightly example.com/approved=yes");
  wait_for_phase("Saved");
  EXPECT_EQ(kubectl("get backup nightly -o jsonpath='{.status.snapshots}'"),
            R"(["snapshot-of-data","snapshot-of-logs"])");
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace hubferry::phase::test
