#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/kube/config.hpp"
#include "kube/config/samples.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::kube {
namespace {

using test::certificate_pem;
using test::kubeconfig_with;
using testing::HasSubstr;

class FindConfig : public testing::Test {
 protected:
  FindConfig() {
    locations_.service_account = directory_.path() / "sa";
    locations_.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
  }

  std::string write(const std::string& name, const std::string& server) {
    return directory_.write(name, kubeconfig_with("server: " + server, "token: t")).string();
  }

  void run_in_a_pod(const std::string& host = "10.0.0.1") {
    environment_["KUBERNETES_SERVICE_HOST"] = host;
    environment_["KUBERNETES_SERVICE_PORT"] = "443";
    directory_.write("sa/token", "pod-token\n");
    directory_.write("sa/ca.crt", certificate_pem);
    directory_.write("sa/namespace", "team-a\n");
  }

  std::string error() {
    try {
      find_config("", "", locations_);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "found";
  }

  test::TemporaryDirectory directory_;
  std::map<std::string, std::string> environment_;
  ConfigLocations locations_;
};

TEST_F(FindConfig, LooksAtTheFlagThenTheVariableThenThePodThenTheHome) {
  environment_["HOME"] = directory_.path();
  write(".kube/config", "https://home");
  EXPECT_EQ(find_config("", "", locations_).server, "https://home");
  run_in_a_pod();
  EXPECT_EQ(find_config("", "", locations_).server, "https://10.0.0.1:443");
  environment_["KUBECONFIG"] = write("variable", "https://variable");
  EXPECT_EQ(find_config("", "", locations_).server, "https://variable");
  EXPECT_EQ(find_config(write("flag", "https://flag"), "", locations_).server, "https://flag");
}

TEST_F(FindConfig, SaysWhereItLooked) {
  EXPECT_THAT(error(), HasSubstr("HOME is not set"));
  environment_["HOME"] = directory_.path();
  EXPECT_THAT(error(), HasSubstr((directory_.path() / ".kube/config").string() + " does not exist"));
}

TEST_F(FindConfig, ThePodsOwnAccountFollowsItsTokenFile) {
  run_in_a_pod();
  const auto config = in_cluster_config(locations_);
  EXPECT_EQ(config.name, "in-cluster");
  EXPECT_EQ(config.server, "https://10.0.0.1:443");
  EXPECT_EQ(config.ca_pem, certificate_pem);
  EXPECT_EQ(config.ns, "team-a");
  EXPECT_EQ(config.token_file, directory_.path() / "sa/token");
  EXPECT_EQ(config.token, "");
}

TEST_F(FindConfig, ThePodsServerMayHaveAnIpv6Address) {
  run_in_a_pod("fd00::1");
  EXPECT_EQ(in_cluster_config(locations_).server, "https://[fd00::1]:443");
}

TEST_F(FindConfig, ThePodsAccountErrorsNameTheFile) {
  const auto in_pod_error = [&] {
    try {
      in_cluster_config(locations_);
    } catch (const ConfigError& e) {
      return std::string{e.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_THAT(in_pod_error(), HasSubstr("KUBERNETES_SERVICE_HOST"));
  run_in_a_pod();
  environment_["KUBERNETES_SERVICE_PORT"] = "https";
  EXPECT_THAT(in_pod_error(), HasSubstr("KUBERNETES_SERVICE_PORT: the port"));
  run_in_a_pod();
  directory_.write("sa/ca.crt", "garbage");
  EXPECT_THAT(in_pod_error(), HasSubstr("sa/ca.crt: holds no PEM block"));
  directory_.write("sa/token", "\n");
  EXPECT_THAT(in_pod_error(), HasSubstr("sa/token: is empty"));
  std::filesystem::remove(directory_.path() / "sa/token");
  EXPECT_THAT(in_pod_error(), HasSubstr("sa/token: cannot be read: No such file or directory"));
}

// A pod without a mounted account is as if outside: the home's file may still do.
TEST_F(FindConfig, APodWithoutATokenFallsThroughToTheHome) {
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  environment_["HOME"] = directory_.path();
  write(".kube/config", "https://home");
  EXPECT_EQ(find_config("", "", locations_).server, "https://home");
}

TEST_F(FindConfig, SeveralFilesMergeAndTheFirstWins) {
  const auto clusters = directory_.write("clusters", "clusters: [{name: k, cluster: {server: https://first}}]\n");
  const auto users = directory_.write("sub/users",
                                      "current-context: c\nusers: [{name: u, user: {tokenFile: token}}]\n"
                                      "contexts: [{name: c, context: {cluster: k, user: u}}]\n");
  directory_.write("sub/token", "t");
  const auto late = directory_.write("late",
                                     "current-context: d\nclusters: [{name: k, cluster: {server: https://late, "
                                     "tls-server-name: x}}]\ncontexts: [{name: d, context: {cluster: k, user: u}}]\n");
  environment_["KUBECONFIG"] = ":" + clusters.string() + ":" + (directory_.path() / "gone").string() +
                               "::" + users.string() + ":" + late.string();
  const auto config = find_config("", "", locations_);
  EXPECT_EQ(config.name, "c");
  EXPECT_EQ(config.server, "https://first");
  EXPECT_EQ(config.tls_server_name, "") << "stanzas are taken whole, never mixed";
  EXPECT_EQ(config.source, users.string());
  EXPECT_EQ(config.token_file, directory_.path() / "sub/token") << "relative to the file that says so";
  EXPECT_EQ(find_config("", "d", locations_).name, "d");
}

TEST_F(FindConfig, AllFilesMissingIsAnErrorEvenInAPod) {
  run_in_a_pod();
  environment_["KUBECONFIG"] = "/gone/a:/gone/b";
  EXPECT_EQ(error(), "/gone/a:/gone/b: none of these files exists");
}

TEST_F(FindConfig, ABrokenFileAmongSeveralIsNamed) {
  const auto broken = directory_.write("broken", "users: 7");
  environment_["KUBECONFIG"] = write("good", "https://good") + ":" + broken.string();
  EXPECT_EQ(error(), broken.string() + ": users: must be a list");
}

}  // namespace
}  // namespace hubferry::kube
