#include <cstdlib>

#include "dying_api.hpp"
#include "state_test.hpp"

/// Whole worlds from a seed: three hubs with faults, outages and quotas, managers that die at any write, a second
/// manager on the destination that would move things back or on, and users who change their minds.
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

class RelocationWorld : public StateTest {
 public:
  explicit RelocationWorld(std::uint64_t seed) : StateTest(sim::HiveOptions{}), chance_(seed) {}
  void TestBody() override {}

  void play() {
    settle_hubs();
    const auto deployments = 1 + below(4);
    for (std::size_t i = 0; i < deployments; ++i) add("c" + std::to_string(i));
    for (auto* server : hubs_) add_faults(*server);
    for (std::size_t lives = 1 + below(5); lives > 0; --lives) live_and_die();
    heal();
    // What began to move to the third hub must end there, and cannot end elsewhere.
    point_at(*third);
    live_for(30min);
    point_at(destination.server);
    live([&]() -> Awaitable<> {
      co_await holds([&] { return std::ranges::all_of(names_, [&](const auto& name) { return is_settled(name); }); });
      co_await sleep(5min);
    });
    for (const auto& name : names_) expect_end(name);
  }

 private:
  kube::Api& api() override { return dying_; }
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return std::make_shared<DyingApi>(network.connect(config), death_);
    };
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(chance_.below(limit)); }

  void settle_hubs() {
    given_secret();
    given_relocator();
    given_third();
    given_secret("to-third", kube::to_kubeconfig(network.config_for(*third, sim::admin())));
    hubs_ = {&source.server, &destination.server, third.get()};
    for (auto* hub : hubs_) {
      hub->add_admission(ocm::cluster_deployments, [this, hub](const sim::AdmissionReview& review) {
        check_owners(*hub, Object{review.after});
        return std::optional<std::string>{};
      });
      hub->add_admission(kube::resources::secrets, [this, hub](const sim::AdmissionReview& review) {
        const bool refused = quota_ && hub != &source.server && review.before == nullptr;
        return refused ? std::optional<std::string>{"exceeded quota: objects"} : std::nullopt;
      });
    }
    // Hubs that point at each other, or a chain of hubs.
    manager_on_destination = below(2) == 0;
    if (manager_on_destination) given_relocator_on_destination(below(2) == 0 ? source.server : *third);
  }

  void given_relocator_on_destination(sim::Server& target) {
    create(kube::resources::secrets,
           R"({"metadata": {"name": "onwards", "namespace": "hive"}, )" + kubeconfig_patch(target).substr(1),
           &destination.server);
    create(cluster_relocators,
           R"({"metadata": {"name": "onwards"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive",
        "name": "onwards"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})",
           &destination.server);
  }

  void add(const std::string& name) {
    names_.push_back(name);
    const bool zone = below(2) == 0;
    given_deployment("", zone ? R"(, "manageDNS": true)" : "", name);
    create(kube::resources::secrets, R"({"metadata": {"name": ")" + name + R"(-kubeconfig", "namespace": "prod"}})");
    if (zone)
      create(ocm::dns_zones, R"({"metadata": {"name": ")" + name + R"(-zone", "namespace": "prod"},
                                 "spec": {"linkToParentDomain": true}, "status": {"nameServers": ["ns1"]}})");
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

  /// One life of the managers, to an end in good order or at some write.
  void live_and_die() {
    death_.writes = 0;
    death_.at = below(3) == 0 ? 0 : 1 + below(25);
    death_.moment = below(2) == 0 ? Death::Moment::before : Death::Moment::after;
    live([&]() -> Awaitable<> {
      for (std::size_t steps = 1 + below(6); steps > 0 && !death_.dead.is_set(); --steps) {
        co_await sleep(std::chrono::milliseconds{below(20'000)});
        co_await disturb();
      }
      death_.buried.set();
    });
    death_.at = 0;
    death_.dead.reset();
    death_.buried.reset();
  }

  Awaitable<> change_label(Key key, bool matches) {
    const auto patch = json::parse(R"({"metadata": {"labels": {"hive-instance": ")" +
                                   std::string{matches ? "hive2" : "stay"} + R"("}}})");
    co_await source.server.api().merge_patch(ocm::cluster_deployments, key, patch.as_object());
  }
  Awaitable<> change_selector(std::string relocator, bool matches) {
    const auto patch = json::parse(R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": ")" +
                                   std::string{matches ? "hive2" : "x"} + R"("}}}})");
    co_await source.server.api().merge_patch(cluster_relocators, {"", relocator}, patch.as_object());
  }
  Awaitable<> create_relocator(std::string name, std::string secret) {
    const auto relocator = json::parse(
        R"({"metadata": {"name": ")" + name + R"("}, "spec": {"kubeconfigSecretRef": {"namespace": "hive", "name": ")" +
        secret + R"("}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
    co_await source.server.api().create(cluster_relocators, relocator.as_object());
  }
  Awaitable<> repoint(sim::Server& hub) {
    const auto patch = json::parse(kubeconfig_patch(hub));
    co_await source.server.api().merge_patch(kube::resources::secrets, {"hive", "to-destination"}, patch.as_object());
  }
  Awaitable<> take_down(sim::Server& hub) {
    hub.outage(true);
    co_await sleep(std::chrono::seconds{below(120)});
    hub.outage(false);
  }

  Awaitable<> disturb() {
    const auto name = names_[below(names_.size())];
    const Key key{"prod", name};
    auto& admin = source.server.api();
    const bool either = below(2) == 0;
    switch (below(12)) {
      case 0: {
        deleted_.insert(name);
        co_await admin.remove(ocm::cluster_deployments, key);
        break;
      }
      case 1: {
        co_await change_label(key, either);
        break;
      }
      case 2: {
        co_await take_down(*hubs_[below(hubs_.size())]);
        break;
      }
      case 3: {
        co_await admin.remove(cluster_relocators, {"", either ? "r1" : "r2"});
        break;
      }
      case 4: {
        co_await change_selector("r1", either);
        break;
      }
      case 5: {  // two that match
        co_await create_relocator("r2", either ? "to-third" : "to-destination");
        break;
      }
      case 6: {
        co_await change_selector("r2", either);
        break;
      }
      case 7: {
        co_await create_relocator("r1", "to-destination");
        break;
      }
      case 8: {
        co_await repoint(either ? *third : destination.server);
        break;
      }
      case 9: {
        quota_ = either;
        break;
      }
      default:
        break;
    }
  }

  /// Users want everything that is left to move, and nothing is broken any more.
  void heal() {
    quota_ = false;
    for (auto* server : hubs_) {
      server->faults().clear();
      server->outage(false);
    }
    if (!on_source(cluster_relocators, "r1")) given_relocator();
    if (!on_source(cluster_relocators, "r2")) given_relocator("r2", "nothing");
    change(cluster_relocators, {"", "r1"},
           R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
    // It matches nothing any more, but what has begun under its name can be looked after: as r1 it leads to the third
    // hub first, then to the destination.
    change(cluster_relocators, {"", "r2"},
           R"({"spec": {"kubeconfigSecretRef": {"name": "to-destination"}, "clusterDeploymentSelector": {"matchLabels":
               {"hive-instance": "nothing"}}}})");
    for (const auto& name : names_)
      if (is_on_source(name))
        change(ocm::cluster_deployments, {"prod", name}, R"({"metadata": {"labels": {"hive-instance": "hive2"}}})");
  }

  bool is_settled(const std::string& name) {
    return !is_on_source(name) &&
           !annotation(on_destination(ocm::cluster_deployments, name), names::relocating).starts_with("onwards");
  }

  /// Hive works on it: nothing holds it back.
  static bool is_owner(const std::optional<Object>& deployment) {
    return deployment && annotation(deployment, ocm::names::hive_relocate_annotation) == "-";
  }

  /// Before every write to a ClusterDeployment on any hub.
  void check_owners(sim::Server& hub, const Object& written) {
    if (!is_owner(written)) return;
    for (auto* other : hubs_)
      if (other != &hub)
        EXPECT_FALSE(is_owner(other->object(ocm::cluster_deployments, written.key())))
            << written.name() << " has two owners: " << hub.name() << " and " << other->name();
  }

  void expect_end(const std::string& name) {
    const Key key{"prod", name};
    const auto destroyed = source.hive.count("deprovision prod/" + name) > 0;
    std::vector<std::string> holders;
    for (auto* hub : hubs_)
      if (hub->object(ocm::cluster_deployments, key)) holders.push_back(hub->name());
    EXPECT_EQ(holders.size(), destroyed ? 0u : 1u)
        << name << (destroyed ? " was destroyed" : "") << testing::PrintToString(holders);
    if (destroyed) EXPECT_TRUE(deleted_.contains(name)) << name << " was destroyed, and nobody wanted that";
    EXPECT_EQ(destination.hive.count("deprovision prod/" + name), 0u);
    for (auto* hive : {&source.hive, &destination.hive})
      EXPECT_EQ(destroyed ? 0u : hive->count("remove dns prod/" + name) + hive->count("remove delegation prod/" + name),
                0u)
          << name << " lives without its DNS records";
    EXPECT_THAT(annotation(on_destination(ocm::cluster_deployments, name), ocm::names::hive_relocate_annotation),
                testing::AnyOf("-", "gone"));
  }

  async::Random chance_;
  Death death_;
  DyingApi dying_{std::shared_ptr<kube::Api>{std::shared_ptr<void>{}, &source.server.api()}, death_};
  std::vector<sim::Server*> hubs_;
  std::vector<std::string> names_;
  std::set<std::string> deleted_;
  bool quota_ = false;
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
