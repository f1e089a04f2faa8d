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
using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Kubeconfig, ReadsEveryFieldThatItKnows) {
  TemporaryDirectory directory;
  const auto file =
      directory.write("config", kubeconfig_with("server: https://api:6443/prefix\n"
                                                "tls-server-name: inner\n"
                                                "certificate-authority-data: " +
                                                    encode_base64(certificate_pem),
                                                "client-certificate-data: " + encode_base64(certificate_pem) +
                                                    "\n"
                                                    "client-key-data: " +
                                                    encode_base64(key_pem) +
                                                    "\n"
                                                    "token: abc",
                                                "namespace: team-a"));
  const auto config = load_kubeconfig(file);
  EXPECT_EQ(config.name, "main");
  EXPECT_EQ(config.source, file.string());
  EXPECT_EQ(config.server, "https://api:6443/prefix");
  EXPECT_EQ(config.tls_server_name, "inner");
  EXPECT_EQ(config.ca_pem, certificate_pem);
  EXPECT_FALSE(config.insecure_skip_tls_verify);
  EXPECT_EQ(config.cluster_name, "cluster-1");
  EXPECT_EQ(config.ns, "team-a");
  EXPECT_EQ(config.client_certificate_pem, certificate_pem);
  EXPECT_EQ(config.client_key_pem, key_pem);
  EXPECT_EQ(config.token, "abc");
}

TEST(Kubeconfig, ResolvesRelativeFilesAgainstItsOwnDirectory) {
  TemporaryDirectory directory;
  directory.write("pki/ca.crt", certificate_pem);
  directory.write("pki/me.crt", certificate_pem);
  directory.write("pki/me.key", key_pem);
  directory.write("token", "t");
  const auto file =
      directory.write("config", kubeconfig_with("server: https://api\ncertificate-authority: pki/ca.crt",
                                                "client-certificate: ./pki/me.crt\nclient-key: " +
                                                    (directory.path() / "pki/me.key").string() + "\ntokenFile: token"));
  const auto config = load_kubeconfig(file);
  EXPECT_EQ(config.ca_pem, certificate_pem);
  EXPECT_EQ(config.client_key_pem, key_pem);
  EXPECT_EQ(config.token_file, directory.path() / "token");
  EXPECT_EQ(config.ca_file, directory.path() / "pki/ca.crt");
  EXPECT_EQ(config.client_certificate_file, directory.path() / "pki/me.crt");
  EXPECT_EQ(config.client_key_file, directory.path() / "pki/me.key");
}

TEST(Kubeconfig, ItsFilesCanBeReadAgainAndNonsenseInThemChangesNothing) {
  TemporaryDirectory directory;
  directory.write("ca.crt", certificate_pem);
  auto config = load_kubeconfig(
      directory.write("config", kubeconfig_with("server: https://api\ncertificate-authority: ca.crt", "token: t")));
  EXPECT_FALSE(reread_files(config));
  directory.write("ca.crt", "half-writ");
  EXPECT_FALSE(reread_files(config));
  std::filesystem::remove(directory.path() / "ca.crt");
  EXPECT_FALSE(reread_files(config));
  EXPECT_EQ(config.ca_pem, certificate_pem);
  const auto renewed = "# renewed\n" + std::string{certificate_pem};
  directory.write("ca.crt", renewed);
  EXPECT_TRUE(reread_files(config));
  EXPECT_EQ(config.ca_pem, renewed);
  // Somebody who took the authority out wants it to stay out.
  config.ca_pem.clear();
  EXPECT_FALSE(reread_files(config));
}

TEST(Kubeconfig, IsAlsoJson) {
  const auto config = parse_kubeconfig(R"({"apiVersion": "v1", "kind": "Config", "current-context": "c",
    "clusters": [{"name": "k", "cluster": {"server": "http://h:8080", "insecure-skip-tls-verify": false}}],
    "users": [{"name": "u", "user": {"token": "1234"}}],
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]})",
                                       "json", std::nullopt);
  EXPECT_EQ(config.server, "http://h:8080");
  EXPECT_EQ(config.token, "1234");
  EXPECT_EQ(config.ns, "default");
}

TEST(Kubeconfig, TheAskedForContextWinsOverTheCurrentOne) {
  const std::string text = kubeconfig_with("server: https://one", "token: t") +
                           "- name: other\n  context: {cluster: cluster-1, user: alice, namespace: elsewhere}\n";
  EXPECT_EQ(parse_kubeconfig(text, "s", std::nullopt).ns, "default");
  EXPECT_EQ(parse_kubeconfig(text, "s", std::nullopt, "other").ns, "elsewhere");
  EXPECT_EQ(error_of([&] { parse_kubeconfig(text, "s", std::nullopt, "third"); }),
            "s: contexts: there is no context 'third'; there are: main, other");
}

TEST(Kubeconfig, ReadsAnExecPluginAndFindsItsCommandBesideTheFile) {
  TemporaryDirectory directory;
  const auto file = directory.write("config", kubeconfig_with("server: https://api",
                                                              "exec:\n"
                                                              "  apiVersion: client.authentication.k8s.io/v1\n"
                                                              "  command: bin/login\n"
                                                              "  args: [--cluster, prod]\n"
                                                              "  env:\n"
                                                              "  - {name: PROFILE, value: p}\n"
                                                              "  installHint: get it\n"
                                                              "  provideClusterInfo: true\n"
                                                              "  interactiveMode: IfAvailable"));
  const auto exec = load_kubeconfig(file).exec.value();
  EXPECT_EQ(exec.command, (directory.path() / "bin/login").string());
  EXPECT_EQ(exec.arguments, (std::vector<std::string>{"--cluster", "prod"}));
  EXPECT_EQ(exec.environment, (std::map<std::string, std::string>{{"PROFILE", "p"}}));
  EXPECT_EQ(exec.install_hint, "get it");
  EXPECT_TRUE(exec.provide_cluster_info);
}

// client-go's rule: the file is the truth, the inline token bridges the time until it can be read.
TEST(Kubeconfig, ATokenFileThatIsMissingIsFineBesideAnInlineToken) {
  TemporaryDirectory directory;
  const auto both = directory.write("both", kubeconfig_with("server: https://api", "token: t\ntokenFile: later"));
  EXPECT_EQ(load_kubeconfig(both).token_file, directory.path() / "later");
  const auto alone = directory.write("alone", kubeconfig_with("server: https://api", "tokenFile: later"));
  EXPECT_THAT(error_of([&] { load_kubeconfig(alone); }), HasSubstr("users[alice].tokenFile: "));
}

// What comes from a Secret must neither read our files nor run programs.
TEST(Kubeconfig, FromASecretMayNotReferToFilesOrPrograms) {
  const auto refuse = [](const std::string& cluster, const std::string& user) {
    return error_of([&] { parse_kubeconfig(kubeconfig_with(cluster, user), "secret a/b", std::nullopt); });
  };
  EXPECT_THAT(refuse("server: https://a\ncertificate-authority: /etc/ssl/cert.pem", "token: t"),
              HasSubstr("secret a/b: clusters[cluster-1].certificate-authority: must not refer to a file"));
  EXPECT_THAT(refuse("server: https://a", "tokenFile: /etc/passwd"),
              HasSubstr("users[alice].tokenFile: must not refer to a file"));
  EXPECT_THAT(refuse("server: https://a", "client-certificate: a\nclient-key: b"),
              HasSubstr("must not refer to a file"));
  EXPECT_THAT(refuse("server: https://a", "exec: {command: id, apiVersion: client.authentication.k8s.io/v1beta1}"),
              HasSubstr("users[alice].exec: must not run a program"));
}

TEST(Kubeconfig, RoundTripsThroughToKubeconfig) {
  ClientConfig config;
  config.name = "true";  // must not come back as a Boolean
  config.server = "https://[::1]:6443/p";
  config.tls_server_name = "inner";
  config.ca_pem = certificate_pem;
  config.cluster_name = "c: #1";
  config.ns = "n";
  config.client_certificate_pem = certificate_pem;
  config.client_key_pem = key_pem;
  config.token = "0123";
  config.token_file = "/var/token";
  config.exec =
      ExecPlugin{"client.authentication.k8s.io/v1", "/bin/login", {"a \"b\"", "", "ü\n"}, {{"K", "v=1"}}, "hint", true};
  const auto again = parse_kubeconfig(to_kubeconfig(config), "copy", "/");
  EXPECT_EQ(again.name, config.name);
  EXPECT_EQ(again.server, config.server);
  EXPECT_EQ(again.tls_server_name, config.tls_server_name);
  EXPECT_EQ(again.ca_pem, config.ca_pem);
  EXPECT_EQ(again.cluster_name, config.cluster_name);
  EXPECT_EQ(again.ns, config.ns);
  EXPECT_EQ(again.client_certificate_pem, config.client_certificate_pem);
  EXPECT_EQ(again.client_key_pem, config.client_key_pem);
  EXPECT_EQ(again.token, config.token);
  EXPECT_EQ(again.token_file, config.token_file);
  EXPECT_EQ(again.exec->command, config.exec->command);
  EXPECT_EQ(again.exec->arguments, config.exec->arguments);
  EXPECT_EQ(again.exec->environment, config.exec->environment);
  EXPECT_EQ(again.exec->install_hint, config.exec->install_hint);
  EXPECT_TRUE(again.exec->provide_cluster_info);
}

TEST(Kubeconfig, RoundTripsAPasswordAndAnUnverifiedServer) {
  ClientConfig config;
  config.server = "https://a";
  config.insecure_skip_tls_verify = true;
  config.username = "u";
  config.password = "p: \\ \" '# \t{}";
  const auto again = parse_kubeconfig(to_kubeconfig(config), "copy", std::nullopt);
  EXPECT_TRUE(again.insecure_skip_tls_verify);
  EXPECT_EQ(again.username, config.username);
  EXPECT_EQ(again.password, config.password);
}

}  // namespace
}  // namespace hubferry::kube
