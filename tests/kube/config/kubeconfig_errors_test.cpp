#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/config.hpp"
#include "kube/config/samples.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::kube {
namespace {

using test::certificate_pem;
using test::key_pem;
using test::kubeconfig_with;
using test::TemporaryDirectory;

/// The message about a kubeconfig in file F; any "hunter2" in it is a secret.
std::string complaint(const std::string& text) {
  try {
    parse_kubeconfig(text, "F", "/nowhere");
  } catch (const ConfigError& e) {
    EXPECT_EQ(std::string{e.what()}.find("hunter2"), std::string::npos) << e.what();
    return e.what();
  }
  return "accepted";
}

std::string about_cluster(const std::string& fields) {
  return complaint(kubeconfig_with(fields, "token: hunter2"));
}

std::string about_user(const std::string& fields) {
  return complaint(kubeconfig_with("server: https://a", fields));
}

TEST(KubeconfigErrors, NameTheFileAndTheLineOfBrokenYaml) {
  EXPECT_EQ(complaint(""), "F: is empty");
  EXPECT_EQ(complaint("# nothing\n"), "F: is empty");
  EXPECT_EQ(complaint("just a text"), "F: is not a YAML mapping");
  EXPECT_EQ(complaint("[]"), "F: is not a YAML mapping");
  EXPECT_THAT(complaint("a: b\n  c: hunter2\n"), testing::StartsWith("F: not valid YAML at line 2"));
  EXPECT_THAT(complaint("users:\n- {name: a, user: {password: *hunter2}}"),
              testing::StartsWith("F: not valid YAML at line 2"));
  EXPECT_THAT(complaint("password: \"\\hunter2\""), testing::StartsWith("F: not valid YAML at line 1"));
  EXPECT_EQ(complaint("a: 1\na: 2\n"), "F: a field is given twice");
  EXPECT_EQ(complaint("[a]: 1"), "F: a field's name must be a text");
}

TEST(KubeconfigErrors, NameTheFieldOfAWrongShape) {
  EXPECT_EQ(complaint("kind: Deployment"), "F: kind: a kubeconfig is of kind Config");
  EXPECT_EQ(complaint("apiVersion: v2"), "F: apiVersion: only v1 is known");
  EXPECT_EQ(complaint("clusters: {}"), "F: clusters: must be a list");
  EXPECT_EQ(complaint("clusters: [text]"), "F: clusters[0]: must be a mapping");
  EXPECT_EQ(complaint("users: [{name: [a]}]"), "F: users[0].name: must be a text");
  EXPECT_EQ(complaint("users: [{name: a}, {name: a}]"), "F: users[a]: there are two of that name");
  EXPECT_EQ(complaint("users: [{name: a, user: {token: [hunter2]}}]"), "F: users[a].token: must be a text");
  EXPECT_EQ(complaint("users: [{name: a, user: {exec: {args: hunter2}}}]"), "F: users[a].exec.args: must be a list");
  EXPECT_EQ(complaint("users: [{name: a, user: {exec: {args: [[]]}}}]"), "F: users[a].exec.args[0]: must be a text");
  EXPECT_EQ(complaint("users: [{name: a, user: {exec: {env: [{value: hunter2}]}}}]"),
            "F: users[a].exec.env[0].name: an environment variable needs a name");
  EXPECT_EQ(complaint("clusters: [{name: a, cluster: {insecure-skip-tls-verify: \"true\"}}]"),
            "F: clusters[a].insecure-skip-tls-verify: must be true or false");
  EXPECT_EQ(complaint("users: [{name: alice, user: {client-certificate-data: hunter2%}}]"),
            "F: users[alice].client-certificate-data: not valid base64");
}

TEST(KubeconfigErrors, NameWhatAContextLacks) {
  EXPECT_EQ(complaint("kind: Config"), "F: current-context: is not set, and no context was asked for; there are none");
  EXPECT_EQ(complaint("current-context: x"), "F: current-context: there is no context 'x'; there are none");
  EXPECT_EQ(complaint("current-context: x\ncontexts: [{name: x}]"), "F: contexts[x].cluster: is missing");
  EXPECT_EQ(complaint("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]"),
            "F: contexts[x].user: is missing");
  EXPECT_EQ(complaint("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]"),
            "F: contexts[x].cluster: there is no cluster 'c'; there are none");
  EXPECT_EQ(
      complaint("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c}]"),
      "F: contexts[x].user: there is no user 'u'; there are none");
  EXPECT_EQ(complaint(kubeconfig_with("server: https://a", "token: t", "namespace: Not_Valid")),
            "F: contexts[main].namespace: is not a valid namespace name");
}

TEST(KubeconfigErrors, NameWhatIsWrongWithACluster) {
  EXPECT_EQ(about_cluster("tls-server-name: a"), "F: clusters[cluster-1].server: is missing");
  EXPECT_EQ(about_cluster("server: a:6443"),
            "F: clusters[cluster-1].server: a server URL begins with https:// or http://");
  EXPECT_EQ(about_cluster("server: https://a\nproxy-url: socks5://u:hunter2@p"),
            "F: clusters[cluster-1].proxy-url: a proxy's URL begins with http://: others are not supported");
  EXPECT_EQ(about_cluster("server: https://a\ncertificate-authority-data: aHVudGVyMg=="),
            "F: clusters[cluster-1].certificate-authority-data: holds no PEM block of a CERTIFICATE");
  EXPECT_EQ(about_cluster("server: https://a\ncertificate-authority: ca.crt"),
            "F: clusters[cluster-1].certificate-authority: /nowhere/ca.crt cannot be read: No such file or directory");
  EXPECT_EQ(about_cluster("server: https://a\ncertificate-authority: x\ncertificate-authority-data: eA=="),
            "F: clusters[cluster-1].certificate-authority: and certificate-authority-data are both given: one of them "
            "must go");
  EXPECT_EQ(
      about_cluster("server: https://a\ninsecure-skip-tls-verify: true\ncertificate-authority-data: " +
                    encode_base64(certificate_pem)),
      "F: clusters[cluster-1].insecure-skip-tls-verify: contradicts certificate-authority: either verify by it, or not "
      "at all");
  EXPECT_EQ(about_cluster("server: https://a\ntls-server-name: \"a\\nb\""),
            "F: clusters[cluster-1].tls-server-name: is not a valid host name");
}

TEST(KubeconfigErrors, NameWhatIsWrongWithAUser) {
  EXPECT_EQ(about_user("as: admin"),
            "F: users[alice].as: impersonation is not supported: use credentials of that user");
  EXPECT_EQ(about_user("as-groups: [a]"),
            "F: users[alice].as-groups: impersonation is not supported: use credentials of that user");
  EXPECT_EQ(about_user("auth-provider: {name: oidc}"),
            "F: users[alice].auth-provider: no longer supported by Kubernetes: use an exec plugin");
  EXPECT_EQ(about_user("token: hunter2\nusername: u\npassword: hunter2"),
            "F: users[alice].token: contradicts username and password: only one authentication method is allowed");
  EXPECT_EQ(about_user("token: \"hunter2\\r\\nX-Admin: 1\""),
            "F: users[alice].token: holds characters that no token has");
  EXPECT_EQ(about_user("client-certificate-data: " + encode_base64(certificate_pem)),
            "F: users[alice].client-key: is missing: a client certificate needs its key");
  EXPECT_EQ(about_user("client-key-data: " + encode_base64(key_pem)),
            "F: users[alice].client-certificate: is missing: a client key needs its certificate");
  EXPECT_EQ(about_user("client-certificate-data: " + encode_base64(certificate_pem) +
                       "\nclient-key-data: " + encode_base64(certificate_pem)),
            "F: users[alice].client-key-data: holds no PEM block of a PRIVATE KEY");
}

TEST(KubeconfigErrors, NameWhatIsWrongWithAnExecPlugin) {
  const auto about = [](const std::string& fields) { return about_user("exec: {" + fields + "}"); };
  const std::string v1 = "apiVersion: client.authentication.k8s.io/v1, ";
  EXPECT_EQ(about("apiVersion: x"), "F: users[alice].exec.command: is missing");
  EXPECT_EQ(about("command: x"), "F: users[alice].exec.apiVersion: is missing");
  EXPECT_EQ(about("command: x, apiVersion: client.authentication.k8s.io/v1alpha1"),
            "F: users[alice].exec.apiVersion: only v1 and v1beta1 of client.authentication.k8s.io are known");
  EXPECT_EQ(about(v1 + "command: x"),
            "F: users[alice].exec.interactiveMode: is missing; with v1 it must be Never, IfAvailable or Always");
  EXPECT_EQ(about(v1 + "command: x, interactiveMode: Always"), "accepted");
  EXPECT_EQ(about(v1 + "command: x, interactiveMode: Maybe"),
            "F: users[alice].exec.interactiveMode: must be Never, IfAvailable or Always");
  EXPECT_EQ(about(v1 + "command: x, interactiveMode: Never"), "accepted");
  EXPECT_EQ(about("command: x, apiVersion: client.authentication.k8s.io/v1beta1"), "accepted");
  EXPECT_EQ(about(v1 + "command: x, interactiveMode: Never, args: [\"a\\0b\"]"),
            "F: users[alice].exec.args: an argument holds a zero byte");
}

// Only what the context refers to must work: a shared file may hold entries that are not for us.
TEST(KubeconfigErrors, OfOtherUsersDoNotMatter) {
  auto text = kubeconfig_with("server: https://a", "token: t");
  text.replace(text.find("users:\n"), 7, "users:\n- name: other\n  user: {as: admin, client-key: gone}\n");
  EXPECT_EQ(complaint(text), "accepted");
}

TEST(KubeconfigErrors, SayWhyAFileCannotBeRead) {
  TemporaryDirectory directory;
  const auto message = [](const std::filesystem::path& file) {
    try {
      load_kubeconfig(file);
    } catch (const ConfigError& e) {
      return std::string{e.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_EQ(message(directory.path() / "gone"), (directory.path() / "gone").string() + ": no such file");
  EXPECT_EQ(message(directory.path()), directory.path().string() + ": cannot be read: Is a directory");
  EXPECT_THAT(message("/dev/zero"), testing::StartsWith("/dev/zero: cannot be read: File too large"));
}

}  // namespace
}  // namespace hubferry::kube
