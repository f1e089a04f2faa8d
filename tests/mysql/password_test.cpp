// The root password: generated, plain, referenced.
#include "mysql/children.hpp"
#include "password_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(PasswordTest, AnEmptyPasswordIsGeneratedOnce) {
  given_running();
  const auto password = password_in_secret();
  EXPECT_EQ(password.size(), 16U);
  EXPECT_EQ(condition("RootPasswordGenerated"), "True SecretGenerated");
  EXPECT_EQ(events("SecretGenerated"), 1U);
  run_for(2min);
  EXPECT_EQ(password_in_secret(), password);
  EXPECT_FALSE(log.contains(password));
}

TEST_F(PasswordTest, ASecretThatIsThereIsKept) {
  create(kube::resources::secrets,
         R"({"metadata": {"name": "demo-root", "namespace": "db"}, "data": {"password": "b2xk"}})");
  given_running();
  EXPECT_EQ(password_in_secret(), "old");
  EXPECT_EQ(events("SecretGenerated"), 0U);
  EXPECT_EQ(condition("RootPasswordGenerated"), "");
}

TEST_F(PasswordTest, ANewPlainPasswordIsSetInTheServerBeforeTheSecretAndThePods) {
  given_running(R"({"rootPassword": "first"})");
  EXPECT_EQ(password_in_secret(), "first");
  bool secret_was_old = false;
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement.starts_with("ALTER USER")) secret_was_old = password_in_secret() == "first";
  };
  patch(R"({"spec": {"rootPassword": "second"}})");
  run_for(10min);
  EXPECT_TRUE(secret_was_old);
  EXPECT_EQ(password_in_secret(), "second");
  for (const auto& [name, one] : mysql.servers()) {
    EXPECT_EQ(one.root_password, "second") << name;
    EXPECT_GT(one.started, async::TimePoint{1min}) << name << " was not restarted";
  }
  EXPECT_EQ(phase(), "Running") << status_text();
}

TEST_F(PasswordTest, AMissingReferencedSecretFailsUntilItIsThereAndAPersonSaysSo) {
  given_cluster(R"({"rootPassword": "ref://chosen"})");
  run_for(10s);
  EXPECT_EQ(phase(), "Failed");
  create(kube::resources::secrets,
         R"({"metadata": {"name": "chosen", "namespace": "db"}, "data": {"password": "b2xk"}})");
  run_for(5min);
  EXPECT_EQ(phase(), "Failed");
  patch(R"({"metadata": {"annotations": {"mysql.hubferry.io/reconcile": "now"}}})");
  run_for(1min);
  EXPECT_EQ(phase(), "Running") << status_text();
  EXPECT_EQ(cluster().annotation("mysql.hubferry.io/reconcile"), "");
}

TEST_F(PasswordTest, AReferenceToAnotherNamespaceIsRefused) {
  given_cluster(R"({"rootPassword": "ref://kube-system/admin"})");
  run_for(10s);
  EXPECT_EQ(phase(), "Failed");
  patch(R"({"spec": {"rootPassword": ""}})");
  run_for(1min);
  EXPECT_EQ(phase(), "Running") << "a repaired spec needs no annotation: " << status_text();
}

TEST_F(PasswordTest, ASecretChangedBehindTheOperatorIsReportedAndNothingIsRestarted) {
  given_running();
  patch(R"({"data": {"password": "b3RoZXI="}})", kube::resources::secrets, "demo-root");
  run_for(10min);
  EXPECT_EQ(condition("ReplicasHealthy"), "False PasswordMismatch") << status_text();
  for (const auto& [name, one] : mysql.servers()) EXPECT_LT(one.started, async::TimePoint{1min}) << name;
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
}

TEST_F(PasswordTest, WhenTheSecretInUseIsDeletedTheClusterContinuesAsSoonAsItIsBack) {
  const auto secret = R"({"metadata": {"name": "chosen", "namespace": "db"}, "data": {"password": "b2xk"}})";
  create(kube::resources::secrets, secret);
  given_running(R"({"rootPassword": "ref://chosen"})");
  loop.run(server.api().remove(kube::resources::secrets, {"db", "chosen"}));
  run_for(2min);
  EXPECT_EQ(phase(), "Running");
  EXPECT_THAT(cluster().string_at({"status", "message"}), testing::HasSubstr("does not exist"));
  create(kube::resources::secrets, secret);
  run_for(3min);
  EXPECT_EQ(cluster().string_at({"status", "message"}), "") << status_text();
  mysql.at("demo-0").runs = false;
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
}

// Nobody knows the password of the data any more: another one would only look like it.
TEST_F(PasswordTest, AGeneratedSecretThatWasDeletedIsNotReplacedByOneWithAnotherPassword) {
  given_running();
  const auto old = json::serialize(server.object(kube::resources::secrets, {"db", "demo-root"})->json().at("data"));
  loop.run(server.api().remove(kube::resources::secrets, {"db", "demo-root"}));
  run_for(2min);
  EXPECT_FALSE(exists(kube::resources::secrets, "demo-root"));
  EXPECT_THAT(std::string{cluster().string_at({"status", "message"})}, HasSubstr("Secret demo-root does not exist"));
  EXPECT_EQ(events("SecretGenerated"), 1U);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-0"));
  create(kube::resources::secrets, R"({"metadata": {"name": "demo-root", "namespace": "db"}, "data": )" + old + "}");
  run_for(3min);
  EXPECT_EQ(cluster().string_at({"status", "message"}), "") << status_text();
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
}

/// A cluster whose password is in a Secret of the user, "old".
class ReferenceTest : public PasswordTest {
 protected:
  void given_secret(const std::string& name, const std::string& password) {
    create(kube::resources::secrets, R"({"metadata": {"name": ")" + name +
                                         R"(", "namespace": "db"}, "data": {"password": ")" +
                                         kube::encode_base64(password) + R"("}})");
  }
  void given_running_with_reference() {
    given_secret("chosen", "old");
    given_running(R"({"rootPassword": "ref://chosen"})");
  }
  [[nodiscard]] std::string secret_in_use() const {
    return root_secret_of(server.object(kinds::stateful_sets, {"db", "demo"}).value());
  }
  void expect_failover() {
    const auto old = primary();
    kill_primary();
    run_for(2min);
    EXPECT_NE(primary(), old) << status_text();
    EXPECT_THAT(mysql.writable(), ElementsAre(primary())) << status_text();
  }
};

TEST_F(ReferenceTest, ThatIsTakenOutLeavesItsPasswordToTheCluster) {
  given_running_with_reference();
  change_password("");
  run_for(1min);
  EXPECT_EQ(cluster().string_at({"status", "message"}), "");
  EXPECT_EQ(events("SecretGenerated"), 0U);
  expect_failover();
  run_for(5min);
  ASSERT_TRUE(exists(kube::resources::secrets, "demo-root")) << status_text();
  EXPECT_EQ(password_in_secret(), "old");
  EXPECT_EQ(secret_in_use(), "demo-root");
  // The user's is not needed any more.
  EXPECT_TRUE(loop.run(server.api().remove(kube::resources::secrets, {"db", "chosen"})));
  run_for(5min);
  EXPECT_EQ(phase(), "Running") << status_text();
  expect_one_primary_with_replicas();
}

TEST_F(ReferenceTest, ThatIsReplacedByAPlainPasswordIsChangedInTheServersFirst) {
  given_running_with_reference();
  change_password("second");
  run_for(10min);
  EXPECT_EQ(password_in_secret(), "second");
  for (const auto& [name, one] : mysql.servers()) EXPECT_EQ(one.root_password, "second") << name << status_text();
  EXPECT_EQ(secret_in_use(), "demo-root");
  expect_failover();
}

// The servers have the new password, and their pods still name the Secret with the old one.
TEST_F(ReferenceTest, ThatIsReplacedByAPlainPasswordIsNoObstacleWhileTheStatefulSetIsRefused) {
  given_running_with_reference();
  server.faults().on({"patch", "statefulsets"}).always().fail(422);
  change_password("second");
  run_for(1min);
  ASSERT_EQ(mysql.at("demo-1").root_password, "second") << status_text();
  ASSERT_EQ(secret_in_use(), "chosen");
  expect_failover();
}

// Nothing changes the password in the servers: the user has to.
TEST_F(ReferenceTest, ToASecretWithAPasswordThatTheServersDoNotAcceptIsReportedAndNotFollowed) {
  given_running_with_reference();
  given_secret("wrong", "typo");
  change_password("ref://wrong");
  run_for(5min);
  EXPECT_EQ(condition("SpecAccepted"), "False SpecInvalid") << status_text();
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("Secret wrong"));
  EXPECT_EQ(secret_in_use(), "chosen");
  expect_failover();
}

TEST_F(ReferenceTest, ToASecretWithTheNewPasswordOfTheServersIsFollowed) {
  given_running_with_reference();
  given_secret("next", "new");
  for (auto& [name, one] : mysql.servers()) one.root_password = "new";
  change_password("ref://next");
  run_for(10min);
  EXPECT_EQ(secret_in_use(), "next");
  EXPECT_EQ(phase(), "Running") << status_text();
  expect_failover();
}

TEST_F(PasswordTest, NoPasswordIsInALogAnEventOrTheStatus) {
  given_running(R"({"rootPassword": "firstSecretWord"})");
  patch(R"({"spec": {"rootPassword": "secondSecretWord"}})");
  run_for(5min);
  kill_primary();
  patch(R"({"spec": {"rootPassword": "thirdSecretWord"}})");
  run_for(5min);
  std::string seen = status_text();
  for (const auto& event : server.objects(kube::resources::events)) seen += json::serialize(event.json());
  for (const auto* kind : {&kinds::stateful_sets, &kinds::pods, &kube::resources::config_maps})
    for (const auto& object : server.objects(*kind)) seen += json::serialize(object.json());
  EXPECT_THAT(seen, testing::Not(HasSubstr("SecretWord")));
  const auto internal = server.object(kube::resources::secrets, {"db", "demo-internal"});
  for (const auto* key : {"replication", "exporter"})
    EXPECT_THAT(seen, testing::Not(HasSubstr(kube::decode_base64(internal->string_at({"data", key})).value())));
}

}  // namespace
}  // namespace hubferry::mysql::test
