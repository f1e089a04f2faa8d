// Runs every command of the documentation, page by page and in order, in a fresh directory and against simulated hubs.
#include <gmock/gmock.h>

#include <iostream>

#include "docs/pages.hpp"
#include "manifests/manifest_files.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

namespace fs = std::filesystem;

/// The pages that one reader follows one after the other.
struct Journey {
  std::vector<std::string> pages;
  /// What the reader has before; see preparation.
  std::string preparation;
};

/// What is there before the first command: `hubferry` in $PATH, a checkout's manifests, and its ./dev. Building is not
/// for a test to repeat: of ./dev only `demo` is run, of its other commands it is checked that they exist.
constexpr const char* checkout = R"(
set -euo pipefail
trap 'for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done; wait' EXIT
mkdir bin && ln -s "$BINARY" bin/hubferry
export PATH=$PWD/bin:$PATH
unset KUBECONFIG
cp -r "$SOURCE/manifests" .
cat > dev <<'END'
#!/bin/sh
[ "$1" != demo ] || exec hubferry "$@"
"$SOURCE/dev" help | grep -q "^  $1 " || { echo "./dev has no command $1" >&2; exit 1; }
END
chmod +x dev
)";

/// A global hub and two hubs with clusters, whose administrator the reader is. The manager that the reader installs as
/// a Deployment is this process.
constexpr const char* hubs = R"(
hubferry sim --clusters 5 --kubeconfig-dir hubs > sim.log 2>&1 &
until grep -q "sim ready" sim.log; do sleep 0.1; done
export KUBECONFIG=$PWD/hubs/global.kubeconfig
cp hubs/hub1.kubeconfig hub1.admin; cp hubs/hub2.kubeconfig hub2.admin
cp hubs/hub1.kubeconfig hubs/hub2.kubeconfig .
hubferry manager --metrics-bind-address 0 --health-probe-bind-address 0 > manager.log 2>&1 &
until grep -q "migration cache synced" manager.log; do sleep 0.1; done
)";

/// The simulator registers its hubs; here the reader will. install.yaml is what test_package compares that of a release
/// with.
constexpr const char* for_installation = R"(
kubectl kustomize manifests/base > install.yaml
kubectl -n hub1 delete secret hub-kubeconfig
kubectl -n hub2 delete secret hub-kubeconfig
)";

const std::vector<Journey>& journeys() {
  static const std::vector<Journey> all{
      {{"docs/first-migration.md"}, checkout},
      {{"docs/install.md", "docs/ui.md", "docs/upgrade.md", "docs/uninstall.md"},
       std::string{checkout} + hubs + for_installation},
      {{"README.md", "CONTRIBUTING.md", "docs/runbook.md", "docs/klusterlet.md"}, std::string{checkout} + hubs},
  };
  return all;
}

/// A block is dozens of processes: on a busy machine they may take longer than one step of another test.
void await(Process& shell, const std::string& mark) {
  for (int attempt = 1;; ++attempt) try {
      shell.await_output_text(mark);
      return;
    } catch (const std::exception&) {
      if (attempt == 4 || !shell.running()) throw;
    }
}

/// docs/install.md asks for kubectl 1.24. Debian 12's is older, and ./dev setup installs that where there is none.
bool kubectl_creates_tokens() {
  Process kubectl{{"kubectl", "create", "token", "--help"}};
  return kubectl.wait() == 0 && kubectl.out().find("service account token") != std::string::npos;
}

class Commands : public testing::TestWithParam<std::size_t> {};

TEST_P(Commands, OfAReaderWhoFollowsThePagesWork) {
  const auto& journey = journeys()[GetParam()];
  // The first one needs no manifests.
  if (GetParam() > 0 && !kubectl_creates_tokens()) GTEST_SKIP() << "needs kubectl 1.24";
  TemporaryDirectory directory;
  std::string script = "cd '" + directory.path().string() + "'\n" + journey.preparation + "\necho '-- prepared'\n";
  std::vector<std::string> done;
  for (const auto& name : journey.pages)
    for (const auto& block : read_page(name).commands()) {
      done.push_back("-- done: " + name + ":" + std::to_string(block.line));
      script += block.text + "\necho '" + done.back() + "'\n";
    }
  EXPECT_FALSE(done.empty());
  const auto file = directory.write("commands.sh", script);
  // timeout makes a process group, and ends all of it with itself.
  Process shell{{"timeout", "--kill-after=10", "900", "bash", file},
                {.environment = {"BINARY=" + hubferry_binary(), "SOURCE=" + source_root().string()}}};
  try {
    await(shell, "-- prepared");
    for (const auto& mark : done) await(shell, mark);
    EXPECT_EQ(shell.wait(), 0) << shell.err();
  } catch (const std::exception& error) {
    shell.signal(SIGTERM);
    ADD_FAILURE() << error.what() << "\n" << shell.err();
    shell.wait();
  }
}

INSTANTIATE_TEST_SUITE_P(Journeys, Commands, testing::Range<std::size_t>(0, 3), [](const auto& info) {
  auto name = fs::path{journeys()[info.param].pages.front()}.stem().string();
  std::erase(name, '-');
  return name;
});

TEST(CommandsOfPages, AreAllPartOfAJourney) {
  std::set<std::string> followed;
  for (const auto& journey : journeys()) followed.insert(journey.pages.begin(), journey.pages.end());
  for (const auto& page : all_pages())
    if (!page.commands().empty()) EXPECT_TRUE(followed.contains(page.name)) << page.name << " is not run";
}

// What cannot run here is marked where the reader sees it, and listed here: more of it should be a decision.
TEST(CommandsOfPages, AreRunExceptForThese) {
  std::multiset<std::string> not_run;
  for (const auto& page : all_pages())
    for (const auto& block : page.blocks)
      if (const auto reason = block.not_run()) {
        not_run.insert(page.name + ": " + *reason);
        std::cout << "not run: " << page.name << ":" << block.line << ": " << *reason << "\n";
      }
  EXPECT_THAT(not_run, testing::UnorderedElementsAre(
                           "docs/install.md: needs docker and a registry", "docs/install.md: needs helm and a release",
                           "docs/install.md: needs OpenShift", "docs/ui.md: needs pods",
                           "docs/klusterlet.md: runs until it is stopped", "docs/runbook.md: needs pods",
                           "docs/upgrade.md: needs helm and a release"));
}

}  // namespace
}  // namespace hubferry::test
