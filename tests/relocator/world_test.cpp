#include <cstdlib>

#include "relocator_test.hpp"

/// Whole worlds from a seed: faults of both servers, deaths of the manager, outages, and users who change their minds.
namespace hubferry::relocator::test {
namespace {

constexpr std::uint64_t usual_seeds = 25;

/// HUBFERRY_RELOCATOR_SEEDS=1..5000 runs those.
std::pair<std::uint64_t, std::uint64_t> seeds() {
  const char* given = std::getenv("HUBFERRY_RELOCATOR_SEEDS");
  if (given == nullptr) return {1, usual_seeds};
  const std::string text{given};
  const auto dots = text.find("..");
  return {std::stoull(text.substr(0, dots)), std::stoull(text.substr(dots + 2))};
}

class RelocationWorld : public RelocatorTest {
 public:
  explicit RelocationWorld(std::uint64_t seed) : chance_(seed) {}
  void TestBody() override {}

  void play() {
    given_secret();
    given_relocator();
    const auto deployments = 1 + below(4);
    for (std::size_t i = 0; i < deployments; ++i) add("c" + std::to_string(i));
    add_faults(source.server);
    add_faults(destination.server);
    for (std::size_t lives = 1 + below(5); lives > 0; --lives)
      live([&]() -> Awaitable<> {
        for (std::size_t steps = 1 + below(6); steps > 0; --steps) {
          co_await sleep(std::chrono::milliseconds{below(20'000)});
          co_await disturb();
          check();
        }
      });
    heal();
    live([&]() -> Awaitable<> {
      co_await holds([&] {
        check();
        return std::ranges::all_of(names_, [&](const std::string& name) { return is_settled(name); });
      });
      co_await sleep(5min);
    });
    for (const auto& name : names_) expect_end(name);
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(chance_.below(limit)); }

  void add(const std::string& name) {
    names_.push_back(name);
    const bool zone = below(2) == 0;
    given_deployment("", zone ? R"(, "manageDNS": true)" : "", name);
    create(kube::resources::secrets, R"({"metadata": {"name": ")" + name + R"(-kubeconfig", "namespace": "prod"}})");
    if (zone)
      create(ocm::dns_zones, R"({"metadata": {"name": ")" + name + R"(-zone", "namespace": "prod"}, "spec": {},
                                 "status": {"nameServers": ["ns1"]}})");
  }

  void add_faults(sim::Server& server) {
    const auto rate = [&] { return 0.01 * static_cast<double>(below(15)); };
    server.faults().on({.verb = "write"}).rate(rate()).reset_after();
    server.faults().on({.verb = "write"}).rate(rate()).reset_before();
    server.faults().on({.verb = "write"}).rate(rate()).fail(503);
    server.faults().on({.verb = "write"}).rate(rate()).fail(409);
    server.faults().on({.verb = "get"}).rate(rate()).fail(500);
    server.faults().on({.verb = "list"}).rate(rate()).fail(503);
    server.faults().on({.verb = "write"}).rate(rate()).delay(sim::Latency::uniform(10ms, 5s));
    server.faults().on({.resource = "clusterdeployments"}).rate(rate()).cut_watch();
  }

  Awaitable<> disturb() {
    const auto name = names_[below(names_.size())];
    const Key key{"prod", name};
    auto& admin = source.server.api();
    switch (below(8)) {
      case 0: {
        deleted_.insert(name);
        co_await admin.remove(ocm::cluster_deployments, key);
        break;
      }
      case 1:
      case 2: {
        const auto patch = json::parse(R"({"metadata": {"labels": {"hive-instance": ")" +
                                       std::string{below(2) == 0 ? "hive2" : "stay"} + R"("}}})");
        co_await admin.merge_patch(ocm::cluster_deployments, key, patch.as_object());
        break;
      }
      case 3: {
        destination.server.outage(true);
        co_await sleep(std::chrono::seconds{below(120)});
        destination.server.outage(false);
        break;
      }
      case 4: {
        co_await admin.remove(cluster_relocators, {"", "r1"});
        break;
      }
      case 5: {
        const auto patch = json::parse(R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": ")" +
                                       std::string{below(2) == 0 ? "hive2" : "x"} + R"("}}}})");
        co_await admin.merge_patch(cluster_relocators, {"", "r1"}, patch.as_object());
        break;
      }
      default:
        break;
    }
  }

  /// Users want everything that is left to move, and nothing is broken any more.
  void heal() {
    for (auto* server : {&source.server, &destination.server}) {
      server->faults().clear();
      server->outage(false);
    }
    if (!on_source(cluster_relocators, "r1")) given_relocator();
    change(cluster_relocators, {"", "r1"},
           R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
    for (const auto& name : names_)
      if (is_on_source(name))
        change(ocm::cluster_deployments, {"prod", name}, R"({"metadata": {"labels": {"hive-instance": "hive2"}}})");
  }

  bool is_settled(const std::string& name) { return !is_on_source(name); }

  /// At every moment: once the destination has it, Hive keeps its hands off the source.
  void check() {
    for (const auto& name : names_) {
      const auto mine = on_source(ocm::cluster_deployments, name);
      if (!mine || !is_on_destination(name)) continue;
      EXPECT_NE(annotation(mine, ocm::names::hive_relocate_annotation), "-") << name << " has two owners";
    }
  }

  void expect_end(const std::string& name) {
    const auto destroyed = source.hive.count("deprovision prod/" + name) > 0;
    EXPECT_NE(destroyed, is_on_destination(name)) << name << (destroyed ? " lives on and was destroyed" : " is lost");
    if (destroyed) EXPECT_TRUE(deleted_.contains(name)) << name << " was destroyed, and nobody wanted that";
    EXPECT_EQ(destination.hive.count("deprovision prod/" + name), 0u);
    EXPECT_EQ(annotation(on_destination(ocm::cluster_deployments, name), ocm::names::hive_relocate_annotation),
              is_on_destination(name) ? "-" : "gone");
  }

  async::Random chance_;
  std::vector<std::string> names_;
  std::set<std::string> deleted_;
};

TEST(RelocationWorlds, NoClusterIsLostOrOwnedTwiceOrDestroyedElsewhere) {
  const auto [first, last] = seeds();
  for (auto seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("HUBFERRY_RELOCATOR_SEEDS=" + std::to_string(seed) + ".." + std::to_string(seed));
    RelocationWorld{seed}.play();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hubferry::relocator::test
