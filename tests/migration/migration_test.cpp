#include "migration_test.hpp"

namespace hubferry::migration::test {

phase::EdgeCoverage& edge_coverage() {
  static phase::EdgeCoverage coverage;
  return coverage;
}

MigrationTest::MigrationTest() {
  options.on_transition = edge_coverage().recorder();
  auto install = [this]() -> Awaitable<> {
    co_await sim::install_crds(global.api(), env);
    for (const auto* name : {"hub1", "hub2", "other"}) {
      json::object ns{{"metadata", json::object{{"name", name}}}};
      auto created = co_await global.api().create(kube::resources::namespaces, ns);
      EXPECT_TRUE(created) << created.error();
    }
  };
  loop.run(install());
  loop.run_ready();
  hubs.add("hub1");
  hubs.add("hub2");
  for (const auto* name : {"a", "b", "c"}) hubs.add_cluster("hub1", name);
}

Awaitable<> MigrationTest::create(std::string name, ClusterNames names, json::object more, std::string ns) {
  json::object spec{{"from", "hub1"}, {"to", "hub2"}};
  if (!names.empty()) spec["includedManagedClusters"] = json::array(names.begin(), names.end());
  for (auto& [key, value] : more) spec[key] = value;
  json::object object{{"metadata", json::object{{"name", name}, {"namespace", ns}}}, {"spec", std::move(spec)}};
  auto created = co_await global.api().create(managed_cluster_migrations, std::move(object));
  EXPECT_TRUE(created) << created.error();
}

void MigrationTest::given(const std::string& name, ClusterNames names, json::object more, std::string ns) {
  loop.run(create(name, std::move(names), std::move(more), std::move(ns)));
}

Awaitable<> MigrationTest::remove(std::string name) {
  auto removed = co_await global.api().remove(managed_cluster_migrations, Key{"default", name});
  EXPECT_TRUE(removed) << removed.error();
}

Awaitable<> MigrationTest::annotate(std::string name, std::string key, std::string value) {
  json::object annotations{{key, value}};
  json::object patch{{"metadata", json::object{{"annotations", annotations}}}};
  auto patched = co_await global.api().merge_patch(managed_cluster_migrations, Key{"default", name}, patch);
  EXPECT_TRUE(patched) << patched.error();
}

Awaitable<> MigrationTest::holds(std::function<bool()> condition) {
  const auto limit = loop.clock().now() + 24h;
  while (!condition() && loop.clock().now() < limit) co_await sleep(100ms);
  EXPECT_TRUE(condition()) << "waited for a day in vain\n" << testing::PrintToString(log.lines());
}

Awaitable<> MigrationTest::renew_leases(std::string hub, std::string name, std::string during) {
  const auto end = loop.clock().now() + 24h;
  while (phase(name) == during && loop.clock().now() < end) {
    for (auto& [cluster, state] : hubs.hub(hub).clusters)
      if (state.available) state.seen = loop.clock().wall_now();
    co_await sleep(10s);
  }
  EXPECT_NE(phase(name), during);
}

Awaitable<> MigrationTest::reaches(std::string name, std::string wanted, std::string ns) {
  auto is_there = [this, name, wanted, ns] { return exists(name, ns) && phase(name, ns) == wanted; };
  co_await holds(is_there);
  EXPECT_EQ(phase(name, ns), wanted);
}

Awaitable<> MigrationTest::vanishes(std::string name, std::string ns) {
  auto is_gone = [this, name, ns] { return !exists(name, ns); };
  co_await holds(is_gone);
}

bool MigrationTest::exists(const std::string& name, const std::string& ns) {
  return global.object(managed_cluster_migrations, {ns, name}).has_value();
}

kube::Object MigrationTest::migration(const std::string& name, const std::string& ns) {
  return global.object(managed_cluster_migrations, {ns, name}).value_or(kube::Object{});
}

std::string MigrationTest::phase(const std::string& name, const std::string& ns) {
  return std::string{migration(name, ns).string_at({"status", "phase"})};
}

std::string MigrationTest::condition(const std::string& name, const std::string& type) {
  const auto object = migration(name);
  const auto* found = kube::find_condition(object, type);
  if (found == nullptr) return "none";
  return std::string{kube::string_at(*found, {"status"})} + " " + std::string{kube::string_at(*found, {"reason"})} +
         ": " + std::string{kube::string_at(*found, {"message"})};
}

std::int64_t MigrationTest::clusters(const std::string& name, const std::string& count) {
  const auto object = migration(name);
  const auto* found = object.find({"status", "clusters", count});
  return found == nullptr ? -1 : found->to_number<std::int64_t>();
}

std::vector<std::string> MigrationTest::listed(const std::string& name, const std::string& key) {
  const auto map = global.object(kube::resources::config_maps, {"default", name});
  if (!map) return {"no ConfigMap"};
  std::vector<std::string> names;
  const auto list = json::parse(std::string{map->string_at({"data", key})});
  for (const auto& entry : list.as_array()) names.emplace_back(entry.as_string());
  return names;
}

std::vector<std::string> MigrationTest::events(const std::string& reason) {
  std::vector<std::string> notes;
  for (const auto& event : global.objects(kube::resources::events))
    if (event.string_at({"reason"}) == reason) notes.emplace_back(event.string_at({"note"}));
  return notes;
}

std::set<std::string> MigrationTest::available_on(const std::string& hub) {
  std::set<std::string> names;
  for (const auto& [name, cluster] : hubs.hub(hub).clusters)
    if (cluster.available) names.insert(name);
  return names;
}

void MigrationTest::expect_nothing_left(const std::string& name) {
  for (const auto* hub_name : {"hub1", "hub2"}) {
    const auto& hub = hubs.hub(hub_name);
    EXPECT_TRUE(hub.kubeconfigs.empty()) << hub_name;
    EXPECT_TRUE(hub.rights.empty()) << hub_name;
    EXPECT_TRUE(hub.accounts.empty()) << hub_name;
    for (const auto& [cluster, state] : hub.clusters) {
      EXPECT_FALSE(state.marked) << hub_name << " " << cluster;
      EXPECT_TRUE(state.accepted) << hub_name << " " << cluster;
    }
  }
  EXPECT_EQ(global.count(ocm::managed_service_accounts), 0u);
  if (exists(name)) {
    const auto object = migration(name);
    EXPECT_EQ(object.find({"metadata", "finalizers"}), nullptr);
  }
}

void MigrationTest::expect_moved(const std::string& name, const std::set<std::string>& moved,
                                 const std::set<std::string>& stayed) {
  EXPECT_EQ(available_on("hub2"), moved);
  EXPECT_EQ(available_on("hub1"), stayed);
  EXPECT_EQ(hubs.hub("hub1").clusters.size(), stayed.size());
  EXPECT_EQ(hubs.hub("hub2").clusters.size(), moved.size());
  expect_nothing_left(name);
}

}  // namespace hubferry::migration::test
