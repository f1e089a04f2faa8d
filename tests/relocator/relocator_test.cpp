#include "relocator_test.hpp"

#include "hubferry/kube/base64.hpp"

namespace hubferry::relocator::test {

phase::EdgeCoverage& edge_coverage() {
  static phase::EdgeCoverage coverage;
  return coverage;
}

sim::CrdSelection kinds_of_hive() {
  sim::CrdSelection selection;
  for (const auto& definition : sim::crds())
    if (kube::string_at(definition, {"spec", "group"}) != "hive.openshift.io")
      selection.without.emplace_back(kube::string_at(definition, {"spec", "names", "kind"}));
  return selection;
}

RelocatorTest::RelocatorTest(sim::HiveOptions hive)
    : source("source", quiet, hive), destination("destination", quiet, hive) {
  options.on_transition = edge_coverage().recorder();
  network.add("https://source.sim", source.server);
  network.add("https://destination.sim", destination.server);
  for (auto* hub : {&source, &destination}) {
    loop.run(sim::install_crds(hub->server.api(), kinds_of_hive(), quiet));
    for (const auto* ns : {"hive", "other"})
      create(kube::resources::namespaces, R"({"metadata": {"name": ")" + std::string{ns} + R"("}})", &hub->server);
  }
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})");
}

hubs::Connect RelocatorTest::connect() {
  return [this](const std::string&, const kube::ClientConfig& config) { return network.connect(config); };
}

void RelocatorTest::create(const kube::Resource& kind, const std::string& text, sim::Server* on) {
  auto& server = on != nullptr ? *on : source.server;
  const auto object = json::parse(text).as_object();
  auto made = loop.run(server.api().create(kind, object));
  EXPECT_TRUE(made) << text << made.error();
  if (!made || !object.contains("status")) return;
  json::object patch{{"status", object.at("status")}};
  auto written = loop.run(server.api().merge_patch(kind, made->key(), patch, "status"));
  EXPECT_TRUE(written) << text;
}

void RelocatorTest::given_deployment(const std::string& more_metadata, const std::string& more_spec,
                                     const std::string& name) {
  create(ocm::cluster_deployments,
         R"({"metadata": {"name": ")" + name + R"(", "namespace": "prod", "labels": {"hive-instance": "hive2"},
             "finalizers": ["hive.openshift.io/deprovision"])" +
             more_metadata + R"(}, "spec": {"baseDomain": "example.com", "clusterName": ")" + name +
             R"(", "installed": true, "clusterMetadata": {"infraID": ")" + name + R"(-x1", "clusterID": "id-)" + name +
             R"(", "adminKubeconfigSecretRef": {"name": ")" + name +
             R"(-kubeconfig"}}, "pullSecretRef": {"name": "pull"})" + more_spec +
             R"(}, "status": {"powerState": "Running"}})");
}

void RelocatorTest::given_relocator(const std::string& name, const std::string& label, bool whole,
                                    const std::string& secret) {
  create(cluster_relocators,
         R"({"metadata": {"name": ")" + name + R"("}, "spec": {"wholeNamespace": )" + (whole ? "true" : "false") +
             R"(, "kubeconfigSecretRef": {"namespace": "hive", "name": ")" + secret +
             R"("}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": ")" + label + R"("}}}})");
}

void RelocatorTest::given_secret(const std::string& name, const std::string& kubeconfig) {
  const auto text =
      kubeconfig.empty() ? kube::to_kubeconfig(network.config_for(destination.server, sim::admin())) : kubeconfig;
  create(kube::resources::secrets, R"({"metadata": {"name": ")" + name +
                                       R"(", "namespace": "hive"}, "data": {"kubeconfig": ")" +
                                       kube::encode_base64(text) + R"("}})");
}

void RelocatorTest::given_move(const std::string& more_spec) {
  given_secret();
  given_deployment("", more_spec);
  given_relocator();
}

std::string RelocatorTest::identity(sim::Server& server) {
  return std::string{server.object(kube::resources::namespaces, {"", "kube-system"})->uid()};
}

void RelocatorTest::change(const kube::Resource& kind, const Key& key, const std::string& merge_patch,
                           sim::Server* on) {
  auto& server = on != nullptr ? *on : source.server;
  auto changed = loop.run(server.api().merge_patch(kind, key, json::parse(merge_patch).as_object()));
  EXPECT_TRUE(changed) << merge_patch << changed.error();
}

void RelocatorTest::remove(const kube::Resource& kind, const Key& key, sim::Server* on) {
  auto& server = on != nullptr ? *on : source.server;
  auto removed = loop.run(server.api().remove(kind, key));
  EXPECT_TRUE(removed) << removed.error();
}

Awaitable<> RelocatorTest::holds(std::function<bool()> condition) {
  const auto limit = loop.clock().now() + 2h;
  while (!condition() && loop.clock().now() < limit) co_await sleep(100ms);
  EXPECT_TRUE(condition()) << "waited for two hours in vain\n" << testing::PrintToString(log.lines());
}

std::string RelocatorTest::condition(const std::string& name) {
  const auto object = on_source(ocm::cluster_deployments, name);
  const auto* found = object ? kube::find_condition(*object, names::condition) : nullptr;
  if (found == nullptr) return "none";
  return std::string{kube::string_at(*found, {"status"})} + " " + std::string{kube::string_at(*found, {"reason"})} +
         ": " + std::string{kube::string_at(*found, {"message"})};
}

std::string RelocatorTest::annotation(const std::optional<Object>& object, const std::string& key) {
  if (!object) return "gone";
  const auto* found = object->find({"metadata", "annotations", key});
  return found == nullptr ? "-" : std::string{found->as_string()};
}

std::vector<std::string> RelocatorTest::events(const std::string& reason) {
  std::vector<std::string> notes;
  for (const auto& event : source.server.objects(kube::resources::events))
    if (event.string_at({"reason"}) == reason) notes.emplace_back(event.string_at({"note"}));
  return notes;
}

double RelocatorTest::metric(const std::string& name, const std::string& relocator, const std::string& reason) {
  if (reason.empty())
    return metrics.given_counter_family(name, "Read by a test.", {"cluster_relocate"}).with({relocator}).value();
  return metrics.given_counter_family(name, "Read by a test.", {"cluster_relocate", "reason"})
      .with({relocator, reason})
      .value();
}

std::vector<std::string> RelocatorTest::writes(sim::Server& server) {
  std::vector<std::string> all;
  for (const auto& request : server.requests())
    if (request.verb != "get" && request.verb != "list" && request.verb != "watch" &&
        request.resource != "events.events.k8s.io")
      all.push_back(request.verb + " " + request.resource +
                    (request.subresource.empty() ? "" : "/" + request.subresource));
  return all;
}

Awaitable<> RelocatorTest::record(kube::Resource kind) {
  kube::Cache<Object> cache{source.server.api(), kind, {}, kube::object_decoder(), quiet};
  const auto subscription = cache.subscribe([this](const Key& key, const auto&, const auto& now) {
    std::string line = key.name + ": gone";
    if (now != nullptr) {
      const auto* found = kube::find_condition(*now, names::condition);
      line = key.name + ": " +
             (found == nullptr ? "none"
                               : std::string{kube::string_at(*found, {"status"})} + " " +
                                     std::string{kube::string_at(*found, {"reason"})}) +
             ", " + annotation(*now, names::relocating) + ", " + annotation(*now, names::relocated) + ", " +
             annotation(*now, ocm::names::hive_relocate_annotation) + (now->is_being_deleted() ? ", deleting" : "");
    }
    if (history.empty() || history.back() != line) history.push_back(line);
  });
  co_await cache.run();
}

void RelocatorTest::expect_no_deprovision() {
  EXPECT_EQ(source.hive.count("deprovision"), 0u) << testing::PrintToString(source.hive.actions());
  EXPECT_EQ(destination.hive.count("deprovision"), 0u) << testing::PrintToString(destination.hive.actions());
  EXPECT_EQ(source.hive.count("remove"), 0u) << testing::PrintToString(source.hive.actions());
  EXPECT_EQ(destination.hive.count("remove"), 0u) << testing::PrintToString(destination.hive.actions());
}

void RelocatorTest::expect_moved(const std::string& name) {
  EXPECT_FALSE(is_on_source(name)) << condition(name) << testing::PrintToString(log.lines());
  EXPECT_TRUE(is_on_destination(name)) << testing::PrintToString(log.lines());
  const auto copy = on_destination(ocm::cluster_deployments, name);
  for (const auto* key : {ocm::names::hive_relocate_annotation, ocm::names::hive_pause_annotation, names::relocated,
                          names::relocating_to})
    EXPECT_EQ(annotation(copy, key), "-") << key;
  EXPECT_EQ(source.server.count(ocm::cluster_deprovisions), 0u);
  EXPECT_EQ(destination.server.count(ocm::cluster_deprovisions), 0u);
  expect_no_deprovision();
}

void RelocatorTest::expect_untouched(const std::string& name) {
  const auto object = on_source(ocm::cluster_deployments, name);
  EXPECT_TRUE(object.has_value());
  EXPECT_FALSE(is_on_destination(name));
  for (const auto* key : {names::relocating, names::relocated, names::role, names::relocating_to,
                          ocm::names::hive_relocate_annotation, ocm::names::hive_pause_annotation})
    EXPECT_EQ(annotation(object, key), "-") << key;
  expect_no_deprovision();
}

}  // namespace hubferry::relocator::test
