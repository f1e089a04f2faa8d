// Tries to become an administrator with the tokens of the manager's accounts, on a real kube-apiserver:
// tests/real-kube/run, or ./dev test --real-kube.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <fstream>

#include "app/cli/server_client.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/sim/crds.hpp"
#include "manifest_files.hpp"
#include "sim/sim_process.hpp"
#include "support/real_loop.hpp"

namespace hubferry::test {
namespace {

using kube::json::object;
using testing::AnyOf;
using testing::HasSubstr;

/// A command of kubectl, with what `-f BODY` reads.
struct Command {
  std::string words;
  std::string body;

  Command(const char* given) : words(given) {}  // NOLINT(google-explicit-constructor): most have no body
  Command(std::string given, std::string read) : words(std::move(given)), body(std::move(read)) {}
};

/// One way to become somebody else, or to break out.
struct WayUp {
  std::string name;
  Command command;
};

constexpr const char* token_request =
    R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}})";

Command create(std::string body) {
  return {"create -f BODY", std::move(body)};
}
Command mint(const std::string& ns, const std::string& account) {
  return {"create --raw /api/v1/namespaces/" + ns + "/serviceaccounts/" + account + "/token -f BODY", token_request};
}
Command token_secret(const std::string& ns, const std::string& account) {
  return create(R"({"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":)"
                R"({"generateName":"stolen-","namespace":")" +
                ns + R"(","annotations":{"kubernetes.io/service-account.name":")" + account + R"("}}})");
}

/// None of them may be open for any account of ours.
std::vector<WayUp> ways_up() {
  return {
      {"issue the token of an administrator", mint("kube-system", "all-powerful")},
      {"have the token of an administrator issued", token_secret("kube-system", "all-powerful")},
      {"change a Secret of kube-system",
       R"(patch secret of-an-administrator -n kube-system --type=merge -p '{"data":{"token":"eA=="}}')"},
      {"delete a Secret of kube-system", "delete secret of-an-administrator -n kube-system"},
      {"bind oneself to cluster-admin",
       "create clusterrolebinding up --clusterrole cluster-admin --user system:serviceaccount:hubferry-system:x"},
      {"bind oneself to cluster-admin in kube-system",
       "create rolebinding up -n kube-system --clusterrole cluster-admin --user x"},
      {"join the binding of an administrator",
       R"(patch clusterrolebinding all-powerful --type=json -p '[{"op":"add","path":"/subjects/-","value":{"kind":"User",)"
       R"("apiGroup":"rbac.authorization.k8s.io","name":"x"}}]')"},
      {"create a role with all permissions", "create clusterrole up --verb='*' --resource='*'"},
      {"create a role that may read Secrets", "create clusterrole up --verb=create --resource=serviceaccounts/token"},
      {"extend the own role",
       R"(patch clusterrole hubferry-target --type=json -p '[{"op":"add","path":"/rules/-","value":{"apiGroups":["*"],)"
       R"("resources":["*"],"verbs":["*"]}}]')"},
      {"impersonate an administrator", "get nodes --as=admin --as-group=system:masters"},
      {"run a pod in kube-system", "run up -n kube-system --image=x"},
      {"change the map of administrators in kube-system",
       R"(patch configmap aws-auth -n kube-system --type=merge -p '{"data":{"mapUsers":"x"}}')"},
      {"create a ConfigMap in kube-system", "create configmap up -n kube-system"},
      {"weaken the pod security of kube-system",
       "label namespace kube-system pod-security.kubernetes.io/enforce=privileged --overwrite"},
      {"delete kube-system", "delete namespace kube-system --wait=false"},
      {"create a webhook that sees all Secrets",
       create(R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration",)"
              R"("metadata":{"name":"up"},"webhooks":[]})")},
      {"replace an API server behind aggregation", "delete apiservice v1.apps"},
      {"approve the certificate of anybody", "certificate approve of-anybody"},
      {"choose the images of the hub",
       R"(patch clustermanager cluster-manager --type=merge -p '{"spec":{"registrationImagePullSpec":"x"}}')"},
  };
}

class WaysUp : public testing::Test {
 protected:
  WaysUp() {
    const char* kubeconfig = std::getenv("HUBFERRY_REAL_KUBECONFIG");
    if (kubeconfig == nullptr) throw std::runtime_error("run this by tests/real-kube/run, or ./dev test --real-kube");
    admin_ = kubeconfig;
    client_ = std::make_unique<app::ServerClient>(kube::load_kubeconfig(admin_));
    static bool prepared = false;
    if (!std::exchange(prepared, true)) prepare();
  }
  ~WaysUp() override {
    run_kubectl(admin_, directory_.path(),
                "delete --ignore-not-found -f " + file("hub-rbac/all-clusters/bindings.yaml") + " -f " +
                    file("hub-rbac/approval/role.yaml"));
  }

  /// Administrators to imitate, and the permissions as docs/install.md installs them.
  void prepare() {
    loop_.run(sim::install_crds(client_->api(), client_->env()));
    for (const auto* words : {"create namespace multicluster-engine", "create namespace cluster1",
                              "create namespace hubferry-system", "create serviceaccount all-powerful -n kube-system",
                              "create serviceaccount of-the-engine -n multicluster-engine",
                              "create clusterrolebinding all-powerful --clusterrole cluster-admin "
                              "--serviceaccount kube-system:all-powerful",
                              "create secret generic of-an-administrator -n kube-system --from-literal=token=x",
                              "create configmap aws-auth -n kube-system"})
      run_kubectl(admin_, directory_.path(), words);  // may be there from another suite
    std::string all = "apply";
    for (const auto* manifest : {"base/namespace.yaml", "base/service-account.yaml", "base/cluster-role.yaml",
                                 "base/role.yaml", "base/user-roles.yaml", "hub-rbac/account.yaml",
                                 "hub-rbac/source.yaml", "hub-rbac/target.yaml", "hub-rbac/clusters.yaml"})
      all += " -f " + file(manifest);
    as_admin(all);
    as_admin(
        "create rolebinding hubferry -n cluster1 --clusterrole hubferry-target-cluster "
        "--serviceaccount hubferry-system:hubferry-hub");
    Process openssl{{"openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj",
                     "/CN=system:kube-controller-manager", "-keyout", directory_.file("key"), "-out",
                     directory_.file("csr")}};
    ASSERT_EQ(openssl.wait(), 0) << openssl.err();
    const auto request = kube::encode_base64(text_of(directory_.file("csr")));
    const auto created = attempt(
        admin_, create(R"({"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":)"
                       R"({"name":"of-anybody"},"spec":{"signerName":"kubernetes.io/kube-apiserver-client",)"
                       R"("usages":["client auth"],"request":")" +
                       request + R"("}})"));
    ASSERT_EQ(created.code, 0) << created.output;
  }

  static std::string file(const std::string& manifest) { return (manifests_directory() / manifest).string(); }
  void as_admin(const std::string& words) {
    const auto ran = run_kubectl(admin_, directory_.path(), words);
    EXPECT_EQ(ran.code, 0) << words << "\n" << ran.output;
  }

  /// A kubeconfig with a token of the account.
  std::string token_of(const std::string& account) {
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = kube::resources::service_accounts;
    request.key = {"hubferry-system", account};
    request.subresource = "token";
    request.body = kube::json::parse(token_request).as_object();
    const auto answer = loop_.run(client_->api().call(request)).value();
    auto config = kube::load_kubeconfig(admin_);
    config.token = answer.string_at({"status", "token"});
    EXPECT_NE(config.token, "");
    const auto file = directory_.file(account + ".kubeconfig");
    std::ofstream{file} << kube::to_kubeconfig(config);
    return file;
  }
  Ran attempt(const std::string& kubeconfig, const Command& command) {
    auto words = command.words;
    const auto body = directory_.file("body.json");
    std::ofstream{body} << command.body;
    if (const auto at = words.find("BODY"); at != std::string::npos) words.replace(at, 4, body);
    return run_kubectl(kubeconfig, directory_.path(), words);
  }
  void expect_closed(const std::string& account, const std::vector<WayUp>& ways) {
    const auto kubeconfig = token_of(account);
    for (const auto& way : ways) {
      const auto ran = attempt(kubeconfig, way.command);
      EXPECT_NE(ran.code, 0) << account << " can " << way.name;
      // Refused, and not merely wrong.
      EXPECT_THAT(ran.output, AnyOf(HasSubstr("orbidden"), HasSubstr("attempting to grant RBAC permissions")))
          << account << ": " << way.name;
    }
  }
  void expect_open(const std::string& account, const Command& command) {
    const auto ran = attempt(token_of(account), command);
    EXPECT_EQ(ran.code, 0) << command.words << "\n" << ran.output;
  }

  TemporaryDirectory directory_;
  std::string admin_;
  std::unique_ptr<app::ServerClient> client_;
  RealLoop loop_;
};

TEST_F(WaysUp, AreClosedForTheAccountOnAHub) {
  auto ways = ways_up();
  ways.push_back({"issue the token of another account", mint("hubferry-system", "hubferry")});
  ways.push_back({"read a Secret of kube-system", "get secret of-an-administrator -n kube-system"});
  ways.push_back({"list all Secrets", "get secrets -A"});
  ways.push_back({"list the Secrets of the engine", "get secrets -n multicluster-engine"});
  expect_closed("hubferry-hub", ways);
}

TEST_F(WaysUp, AreClosedForTheManagerOnTheGlobalHub) {
  expect_closed("hubferry", ways_up());
}

// What is needed works: the tests of the migration show the rest.
TEST_F(WaysUp, TheAccountOnAHubMayDoItsWork) {
  expect_open("hubferry-hub", "create secret generic copied -n cluster1");
  expect_open("hubferry-hub", "delete secret copied -n cluster1");
  expect_open("hubferry-hub", "create serviceaccount of-a-migration -n hubferry-bootstrap");
  expect_open("hubferry-hub", mint("hubferry-bootstrap", "of-a-migration"));
  expect_open("hubferry-hub", "delete serviceaccount of-a-migration -n hubferry-bootstrap");
}

// SECURITY.md says of these three that they are equal to an administrator. They are.
TEST_F(WaysUp, WhatRemainsIsWhatSecurityMdNames) {
  expect_open("hubferry-hub", token_secret("multicluster-engine", "of-the-engine"));
  as_admin("apply -f " + file("hub-rbac/all-clusters/bindings.yaml"));
  expect_open("hubferry-hub", "get secret of-an-administrator -n kube-system");
  as_admin("apply -f " + file("hub-rbac/approval/role.yaml"));
  expect_open("hubferry-hub", "certificate approve of-anybody");
  const auto page = text_of(source_root() / "SECURITY.md");
  for (const auto* named : {"hub-rbac/all-clusters", "hub-rbac/approval", "multicluster-engine"})
    EXPECT_THAT(page, HasSubstr(named));
}

// Everybody who may edit a namespace would move the fleet otherwise.
TEST_F(WaysUp, AnEditorOfANamespaceDoesNotMoveClusters) {
  for (const auto* role : {"edit", "admin"}) {
    as_admin(std::string{"create rolebinding "} + role + "-of-default -n default --clusterrole " + role + " --user " +
             role + "or || true");
    const auto ran =
        run_kubectl(admin_, directory_.path(),
                    std::string{"auth can-i create managedclustermigrations -n default --as="} + role + "or");
    EXPECT_THAT(ran.output, HasSubstr("no")) << role;
  }
}

}  // namespace
}  // namespace hubferry::test
