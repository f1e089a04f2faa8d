#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "app/commands/commands.hpp"
#include "hubferry/kube/yaml.hpp"
#include "hubferry/sim/crds.hpp"
#include "manifest_files.hpp"
#include "support/process.hpp"

namespace hubferry::test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSubsetOf;
using testing::Not;
using testing::UnorderedElementsAreArray;

std::vector<std::string> labels(const std::vector<Manifest>& manifests) {
  std::vector<std::string> all;
  for (const auto& manifest : manifests) all.push_back(manifest.label());
  return all;
}

TEST(Manifests, EveryObjectHasAKindAndAName) {
  const auto all = all_manifests();
  EXPECT_GT(all.size(), 20U);
  for (const auto& manifest : all) {
    EXPECT_NE(manifest.api_version(), "") << manifest.file;
    EXPECT_NE(manifest.kind(), "") << manifest.file;
    EXPECT_NE(manifest.name(), "") << manifest.file;
  }
}

TEST(Manifests, EveryFileIsListedByItsKustomization) {
  for (const auto& directory : kustomizations()) {
    const auto listed = resources_of(directory);
    for (const auto& path : listed) EXPECT_TRUE(fs::exists(path)) << path;
    for (const auto& entry : fs::directory_iterator(directory))
      if (entry.path().extension() == ".yaml" && entry.path().filename() != "kustomization.yaml")
        EXPECT_THAT(listed, Contains(entry.path())) << "in " << directory;
  }
}

/// Since 1.21 `resources` may name directories. Debian 12's kubectl is older.
bool kubectl_follows_directories() {
  Process probe{{"kubectl", "kustomize", (manifests_directory() / "base").string()}};
  return probe.wait() == 0 || probe.err().find("must be a file") == std::string::npos;
}

TEST(Manifests, KubectlBuildsEveryKustomization) {
  const bool follows_directories = kubectl_follows_directories();
  for (const auto& directory : kustomizations()) {
    const auto listed = resources_of(directory);
    const bool has_directories =
        std::any_of(listed.begin(), listed.end(), [](const auto& path) { return fs::is_directory(path); });
    if (has_directories && !follows_directories) continue;
    Process kubectl{{"kubectl", "kustomize", directory.string()}};
    EXPECT_EQ(kubectl.wait(), 0) << directory << kubectl.err();
    std::vector<Manifest> built;
    for (auto& document : kube::parse_yaml_documents(kubectl.out(), "kubectl's output"))
      built.push_back({directory, document.as_object()});
    auto expected = labels(flattened(directory));
    if (directory.filename() == "monitoring") expected.emplace_back("ConfigMap hubferry-system/hubferry-dashboard");
    EXPECT_THAT(labels(built), UnorderedElementsAreArray(expected)) << directory;
  }
}

TEST(Manifests, TheBaseRunsTheImageThatTheDockerfileBuilds) {
  const auto kustomization = read_manifests(manifests_directory() / "base/kustomization.yaml").at(0).content;
  const auto& image = kustomization.at("images").at(0);
  EXPECT_EQ(image.at("name"), "hubferry");
  EXPECT_THAT(text_of(source_root() / "Dockerfile"),
              HasSubstr("docker build -t hubferry:" + std::string{image.at("newTag").as_string()}));
}

/// Kinds of Kubernetes itself and of the Prometheus operator; others must have a CRD that we know.
TEST(Manifests, ReferToExistingKindsOnly) {
  std::set<std::string> known{"v1 Namespace",
                              "v1 ServiceAccount",
                              "v1 Service",
                              "v1 Secret",
                              "v1 ConfigMap",
                              "apps/v1 Deployment",
                              "policy/v1 PodDisruptionBudget",
                              "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
                              "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
                              "networking.k8s.io/v1 NetworkPolicy",
                              "rbac.authorization.k8s.io/v1 Role",
                              "rbac.authorization.k8s.io/v1 RoleBinding",
                              "rbac.authorization.k8s.io/v1 ClusterRole",
                              "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
                              "apiextensions.k8s.io/v1 CustomResourceDefinition",
                              "monitoring.coreos.com/v1 ServiceMonitor",
                              "monitoring.coreos.com/v1 PrometheusRule"};
  for (const auto& definition : sim::crds()) {
    const auto& spec = definition.at("spec");
    for (const auto& version : spec.at("versions").as_array())
      known.insert(std::string{spec.at("group").as_string()} + "/" + std::string{version.at("name").as_string()} + " " +
                   std::string{spec.at("names").at("kind").as_string()});
  }
  for (const auto& manifest : all_manifests())
    EXPECT_TRUE(known.contains(manifest.api_version() + " " + manifest.kind())) << manifest.file << manifest.label();
}

// What kubectl shows of a migration must be something that a migration has.
TEST(MigrationDefinition, ItsColumnsAreFieldsOfItsSchema) {
  const auto definition =
      find_manifest("CustomResourceDefinition", "managedclustermigrations.global-hub.open-cluster-management.io");
  const auto& version = definition.content.at("spec").at("versions").at(0);
  std::vector<std::string> names;
  for (const auto& column : version.at("additionalPrinterColumns").as_array()) {
    names.emplace_back(column.at("name").as_string());
    std::string path{column.at("jsonPath").as_string()};
    if (path.starts_with(".metadata.")) continue;
    // "conditions[?(…)].reason": the filter chooses an item, whose fields follow.
    const auto filter = path.find("[?");
    if (filter != std::string::npos) path.replace(filter, path.find(']') + 1 - filter, ".[]");
    const json::value* field = &version.at("schema").at("openAPIV3Schema");
    std::istringstream steps{path.substr(1)};
    for (std::string step; field != nullptr && std::getline(steps, step, '.');) {
      const auto& schema = field->as_object();
      field = step == "[]" ? kube::find(schema, {"items"}) : kube::find(schema, {"properties", step});
    }
    ASSERT_NE(field, nullptr) << names.back();
    EXPECT_EQ(field->at("type"), column.at("type")) << names.back();
  }
  EXPECT_THAT(names, testing::ElementsAre("Phase", "From", "To", "Clusters", "Failed", "Reason", "Age"));
}

TEST(Rights, NoWildcardsAndNoEscalation) {
  for (const auto& manifest : all_manifests()) {
    if (manifest.kind() != "Role" && manifest.kind() != "ClusterRole") continue;
    for (const auto& rule : manifest.content.at("rules").as_array()) {
      for (const auto* part : {"apiGroups", "resources", "verbs"})
        for (const auto& word : rule.at(part).as_array())
          EXPECT_THAT(word.as_string(),
                      testing::AllOf(Not(HasSubstr("*")), testing::Ne("escalate"), testing::Ne("impersonate")))
              << manifest.label();
      const auto& verbs = rule.at("verbs").as_array();
      const bool binds = std::find(verbs.begin(), verbs.end(), "bind") != verbs.end();
      EXPECT_TRUE(!binds || rule.as_object().contains("resourceNames")) << manifest.label() << ": bind only by name";
    }
  }
}

/// The rules that a directory grants in all namespaces.
json::array granted_everywhere(const fs::path& directory) {
  const auto all = flattened(directory);
  json::array rules;
  for (const auto& binding : all) {
    if (binding.kind() != "ClusterRoleBinding") continue;
    for (const auto& role : all)
      if (role.kind() == "ClusterRole" &&
          role.content.at("metadata").at("name") == binding.content.at("roleRef").at("name"))
        for (const auto& rule : role.content.at("rules").as_array()) rules.push_back(rule);
  }
  return rules;
}

// With any of these in every namespace one becomes an administrator; ways_up_test.cpp tries it on a real server.
TEST(Rights, NothingThatMakesAnAdministratorIsGrantedInAllNamespaces) {
  const std::map<std::string, std::set<std::string>> harmless{{"secrets", {}},
                                                              {"configmaps", {"get", "list", "watch"}},
                                                              {"serviceaccounts", {"get", "list", "watch"}},
                                                              {"pods", {"get"}},
                                                              {"serviceaccounts/token", {}},
                                                              {"rolebindings", {"get"}},
                                                              {"clustermanagers", {}},
                                                              {"certificatesigningrequests/approval", {}},
                                                              {"signers", {}}};
  for (const auto* directory : {"base", "hub-rbac"})
    for (const auto& rule : granted_everywhere(manifests_directory() / directory))
      for (const auto& resource : rule.at("resources").as_array()) {
        const auto known = harmless.find(std::string{resource.as_string()});
        if (known == harmless.end()) continue;
        auto allowed = known->second;
        // RBAC cannot select the hubs' kubeconfigs by their label: SECURITY.md says so.
        if (directory == std::string_view{"base"} && known->first == "secrets") allowed = {"get", "list", "watch"};
        for (const auto& verb : rule.at("verbs").as_array())
          EXPECT_THAT(allowed, Contains(std::string{verb.as_string()})) << directory << ": " << known->first;
      }
}

TEST(Rights, AMigrationIsForThoseWithARoleOfItsOwn) {
  const auto role = find_manifest("ClusterRole", "hubferry-migrations-edit");
  for (const auto& label : role.content.at("metadata").at("labels").as_object())
    EXPECT_THAT(std::string{label.key()}, Not(HasSubstr("aggregate")));
  // `kubectl apply` and `hubferry cancel` read first: with this role alone they must work.
  const auto& verbs = role.content.at("rules").at(0).at("verbs").as_array();
  for (const auto* verb : {"get", "list", "watch", "create", "patch", "delete"})
    EXPECT_THAT(verbs, Contains(json::value(verb)));
}

TEST(Rights, EveryBindingRefersToAnExistingRoleAndAccount) {
  const auto hub_rbac = manifests_directory() / "hub-rbac";
  for (const auto& directory :
       {manifests_directory() / "base", hub_rbac, hub_rbac / "all-clusters", hub_rbac / "approval"}) {
    auto all = labels(flattened(directory));
    for (const auto& label : labels(flattened(hub_rbac))) all.push_back(label);
    for (const auto& manifest : flattened(directory)) {
      if (!manifest.kind().ends_with("RoleBinding")) continue;
      const auto& role = manifest.content.at("roleRef");
      const std::string ns = role.at("kind") == "Role" ? manifest.ns() + "/" : "";
      EXPECT_THAT(all, Contains(std::string{role.at("kind").as_string()} + " " + ns +
                                std::string{role.at("name").as_string()}));
      for (const auto& subject : manifest.content.at("subjects").as_array())
        EXPECT_THAT(all, Contains("ServiceAccount " + std::string{subject.at("namespace").as_string()} + "/" +
                                  std::string{subject.at("name").as_string()}));
    }
  }
}

json::object pod_spec() {
  return find_manifest("Deployment", "hubferry-manager").content.at("spec").at("template").at("spec").as_object();
}

// What the Pod Security Standard "restricted" asks for, and a root file system that cannot be written.
TEST(Deployment, MeetsThePodSecurityProfileOfItsNamespace) {
  const auto pod = pod_spec();
  EXPECT_EQ(pod.at("securityContext").at("runAsNonRoot"), true);
  EXPECT_EQ(pod.at("securityContext").at("seccompProfile").at("type"), "RuntimeDefault");
  const auto& container = pod.at("containers").at(0);
  const auto& security = container.at("securityContext");
  EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(security.at("readOnlyRootFilesystem"), true);
  EXPECT_EQ(security.at("capabilities").at("drop"), json::array{"ALL"});
  EXPECT_FALSE(pod.contains("hostNetwork"));
  EXPECT_FALSE(pod.contains("volumes"));
  EXPECT_TRUE(container.at("resources").at("limits").as_object().contains("memory"));
  const auto space = find_manifest("Deployment", "hubferry-manager").ns();
  for (const auto& manifest : flattened(manifests_directory() / "base"))
    if (manifest.kind() == "Namespace" && manifest.name() == space)
      EXPECT_EQ(manifest.content.at("metadata").at("labels").at("pod-security.kubernetes.io/enforce"), "restricted");
}

// Users and groups are OpenShift's to choose: restricted-v2 refuses a pod that names others than those of its
// namespace's range. Elsewhere they are the image's, which has to name them by number for runAsNonRoot.
TEST(Deployment, OpenShiftsRestrictedSecurityContextConstraintAdmitsEveryPod) {
  const std::set<std::string> volumes{"configMap", "csi",       "downwardAPI", "emptyDir",
                                      "ephemeral", "projected", "secret",      "persistentVolumeClaim"};
  std::size_t checked = 0;
  for (const auto& manifest : all_manifests()) {
    if (manifest.kind() != "Deployment") continue;
    ++checked;
    const auto& pod = manifest.content.at("spec").at("template").at("spec").as_object();
    std::vector<json::object> contexts{pod.at("securityContext").as_object()};
    for (const auto& container : pod.at("containers").as_array()) {
      contexts.push_back(container.at("securityContext").as_object());
      EXPECT_EQ(contexts.back().at("capabilities").at("drop"), json::array{"ALL"}) << manifest.label();
      EXPECT_EQ(contexts.back().at("allowPrivilegeEscalation"), false) << manifest.label();
    }
    for (const auto& context : contexts)
      for (const auto* chosen : {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions"})
        EXPECT_FALSE(context.contains(chosen)) << manifest.label() << " chooses " << chosen;
    for (const auto* shared : {"hostNetwork", "hostPID", "hostIPC"})
      EXPECT_FALSE(pod.contains(shared)) << manifest.label();
    if (const auto* of_pod = pod.if_contains("volumes"); of_pod != nullptr)
      for (const auto& volume : of_pod->as_array())
        for (const auto& field : volume.as_object())
          EXPECT_TRUE(field.key() == "name" || volumes.contains(std::string{field.key()})) << manifest.label();
  }
  EXPECT_EQ(checked, 3U);
  EXPECT_THAT(text_of(source_root() / "Dockerfile"), testing::ContainsRegex("\nUSER [1-9][0-9]*(:[1-9][0-9]*)?\n"));
}

// A credential that nobody renews is for those who choose it: manifests/hub-rbac/lasting-token.
TEST(Rights, NoTokenThatNeverExpiresIsIssuedUnasked) {
  for (const auto* directory : {"base", "hub-rbac", "klusterlet", "mysql", "relocator"})
    for (const auto& manifest : flattened(manifests_directory() / directory))
      EXPECT_NE(kube::string_at(manifest.content, {"type"}), "kubernetes.io/service-account-token") << manifest.label();
}

TEST(Deployment, StartsTheManagerWithExistingFlags) {
  app::CommandLine line{"hubferry", ""};
  app::add_manager_command(line);
  std::map<std::string, const app::Flag*> flags;
  for (const auto& flag : line.commands().front().flags()) flags["--" + flag.name] = &flag;
  const auto pod = pod_spec();
  const auto& arguments = pod.at("containers").at(0).at("args").as_array();
  EXPECT_EQ(arguments.at(0), "manager");
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string text{arguments[i].as_string()};
    const auto equals = text.find('=');
    ASSERT_TRUE(flags.contains(text.substr(0, equals))) << text;
    EXPECT_NO_THROW(
        flags[text.substr(0, equals)]->apply(equals == std::string::npos ? "true" : text.substr(equals + 1)));
  }
}

class PortsOf : public testing::TestWithParam<const char*> {};

TEST_P(PortsOf, ADeploymentItsProbesAndItsServiceAgree) {
  const std::string name = GetParam();
  const std::string service = name == "hubferry-manager" ? "hubferry-metrics" : name + "-metrics";
  const auto deployment = find_manifest("Deployment", name);
  const auto& pod = deployment.content.at("spec").at("template").at("spec");
  const auto& container = pod.at("containers").at(0);
  std::map<std::string, std::int64_t> ports;
  for (const auto& port : container.at("ports").as_array())
    ports[std::string{port.at("name").as_string()}] = port.at("containerPort").as_int64();
  EXPECT_EQ(ports, (std::map<std::string, std::int64_t>{{"metrics", 8080}, {"health", 8081}}));
  EXPECT_EQ(container.at("livenessProbe").at("httpGet").at("port"), "health");
  EXPECT_EQ(container.at("readinessProbe").at("httpGet").at("path"), "/readyz");
  EXPECT_EQ(find_manifest("Service", service).content.at("spec").at("ports").at(0).at("targetPort"), "metrics");
  const auto& selector = deployment.content.at("spec").at("selector").at("matchLabels");
  EXPECT_EQ(find_manifest("Service", service).content.at("spec").at("selector"), selector);
  EXPECT_EQ(find_manifest("PodDisruptionBudget", name).content.at("spec").at("selector").at("matchLabels"), selector);
  EXPECT_EQ(find_manifest("NetworkPolicy", name).content.at("spec").at("podSelector").at("matchLabels"), selector);
}

INSTANTIATE_TEST_SUITE_P(Managers, PortsOf, testing::Values("hubferry-manager", "hubferry-mysql"));

TEST(Image, HasThePluginOfKubectl) {
  EXPECT_THAT(text_of(source_root() / "Dockerfile"), HasSubstr("RUN ln -s hubferry /usr/bin/kubectl-hubferry\n"));
}

TEST(Image, HasEveryLibraryThatTheBinaryLinks) {
  // What Debian's base image and the C++ runtime bring; the latter comes with any of the other packages.
  std::set<std::string> packages{"libc6", "libstdc++6", "libgcc-s1"};
  const auto dockerfile = text_of(source_root() / "Dockerfile");
  std::istringstream words{dockerfile.substr(dockerfile.rfind("FROM "))};
  for (std::string word; words >> word;) packages.insert(word);
  Process script{
      {"sh", "-c",
       "ldd \"$0\" | sed -n 's/.*=> \\(\\/[^ ]*\\).*/\\1/p' | while read -r file; do "
       "(dpkg -S \"$file\" || dpkg -S \"/usr$file\" || dpkg -S \"${file#/usr}\") 2>/dev/null | head -1; done",
       hubferry_binary()}};
  EXPECT_EQ(script.wait(), 0);
  std::istringstream lines{script.out()};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(packages.contains(line.substr(0, line.find(':')))) << line;
  EXPECT_GT(count, 5U) << script.out();
}

}  // namespace
}  // namespace hubferry::test
