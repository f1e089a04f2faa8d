// The root password, changed while servers lag, crash and are replaced.
#include "password_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::HasSubstr;

// The new password could only be set on the primary, which is dead: nobody would be promoted.
TEST_F(PasswordTest, AChangedPasswordDoesNotKeepADeadPrimaryFromBeingReplaced) {
  given_running(R"({"rootPassword": "first"})");
  kill_primary();
  change_password();
  for (int i = 0; i < 120 && primary() == "demo-0"; ++i) run_for(1s);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  run_for(10min);
  EXPECT_EQ(password_in_secret(), "second") << status_text();
  for (const auto& [name, one] : mysql.servers()) EXPECT_EQ(one.root_password, "second") << name;
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(condition("SpecAccepted"), "True SpecValid");
}

TEST_F(PasswordTest, APasswordIsNotChangedWhileThePrimaryHasNoAddress) {
  given_running(R"({"rootPassword": "first"})");
  stop_operator();
  patch(R"({"status": {"podIP": null}})", kinds::pods, "demo-0", "status");
  change_password();
  start_operator();
  run_for(5s);
  EXPECT_EQ(password_in_secret(), "first") << "the servers have no other: " << status_text();
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("spec.rootPassword is not changed yet"));
}

// If the primary died now, the operator could not log in to the one that lacks it.
TEST_F(PasswordTest, TheSecretGetsANewPasswordWhenEveryServerHasIt) {
  given_running(R"({"rootPassword": "first"})");
  mysql.at("demo-2").delay = 1;  // it does not apply what it receives
  change_password();
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "second");
  EXPECT_EQ(password_in_secret(), "first") << status_text();
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("demo-2"));
  EXPECT_EQ(condition("ReplicasHealthy"), "True Replicating") << "servers with either password are reached";
  mysql.at("demo-2").delay.reset();
  run_for(1min);
  EXPECT_EQ(password_in_secret(), "second") << status_text();
}

// It takes a replica a moment to apply it: nothing is wrong with the spec.
TEST_F(PasswordTest, AChangeOfThePasswordWaitsForTheReplicasAndIsNoReasonForAWarning) {
  given_running(R"({"rootPassword": "first"})");
  auto catch_up = [this]() -> Awaitable<> {
    co_await loop.clock().sleep_for(700ms);
    mysql.at("demo-2").delay.reset();
  };
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (!statement.starts_with("ALTER USER IF EXISTS 'root'@'%'")) return;
    mysql.at("demo-2").delay = 1;
    scope.spawn(catch_up());
  };
  change_password();
  run_for(5s);
  EXPECT_EQ(password_in_secret(), "second") << "within one pass: " << status_text();
  EXPECT_EQ(condition("SpecAccepted"), "") << status_text();
  mysql.on_statement = {};
  mysql.at("demo-2").away = true;
  change_password("third");
  run_for(1min);
  EXPECT_EQ(condition("SpecAccepted"), "False ChangePending");
  EXPECT_EQ(events("SpecInvalid"), 0U);
}

TEST_F(PasswordTest, AChangeOfThePasswordDoesNotBeginWhileAServerCannotBeReached) {
  given_running(R"({"rootPassword": "first"})");
  mysql.at("demo-2").away = true;
  std::vector<std::string> changes;
  mysql.on_statement = [&](const std::string&, const std::string& statement) { changes.push_back(statement); };
  change_password();
  run_for(1min);
  EXPECT_THAT(changes, testing::Not(testing::Contains(HasSubstr("ALTER USER"))));
  EXPECT_EQ(password_in_secret("pendingPassword"), "");
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("spec.rootPassword is not changed yet, waits for demo-2"));
  change_password("first");
  run_for(1min);
  expect_password("first");
  mysql.at("demo-2").away = false;
  change_password();
  run_for(10min);
  expect_password("second");
}

TEST_F(PasswordTest, BothPasswordsAreInTheSecretBeforeAServerIsChanged) {
  given_running(R"({"rootPassword": "first"})");
  bool had_both = false;
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement.starts_with("ALTER USER"))
      had_both = password_in_secret() == "first" && password_in_secret("pendingPassword") == "second";
  };
  change_password();
  run_for(1min);
  EXPECT_TRUE(had_both);
  EXPECT_EQ(password_in_secret(), "second") << status_text();
  EXPECT_EQ(password_in_secret("pendingPassword"), "");
}

// The spec is what the Secret has, and a new leader has seen nothing else: it would be locked out of the primary.
TEST_F(PasswordTest, AHalfDoneChangeOfThePasswordThatIsRevertedIsTakenBackOnTheServers) {
  given_half_done_change();
  stop_operator();
  change_password("first");
  start_operator();
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first") << status_text();
  mysql.at("demo-2").delay.reset();
  run_for(2min);
  expect_password("first");
  EXPECT_EQ(primary(), "demo-0");
  kill_primary();
  run_for(2min);
  EXPECT_NE(primary(), "demo-0") << status_text();
}

TEST_F(PasswordTest, AThirdPasswordIsSetAfterAHalfDoneChangeIsTakenBack) {
  given_half_done_change();
  change_password("third");
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first") << status_text();
  EXPECT_EQ(password_in_secret(), "first");
  EXPECT_EQ(password_in_secret("revokedPassword"), "second");
  mysql.at("demo-2").delay.reset();
  run_for(10min);
  expect_password("third");
}

// It accepts the first one because it has applied neither the change nor its reversal: the second one is yet to come.
TEST_F(PasswordTest, AReversalEndsWhenEveryReplicaHasAppliedItWhateverTheSpecSaysMeanwhile) {
  given_half_done_change();
  EXPECT_TRUE(mysql.write(mysql.at("demo-0").address));
  change_password("first");
  run_for(3min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first") << status_text();
  EXPECT_EQ(password_in_secret("revokedPassword"), "second");
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("waits for demo-2, which has not applied it yet"));
  change_password();
  run_for(3min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first") << status_text();
  EXPECT_EQ(password_in_secret("revokedPassword"), "second");
  mysql.at("demo-2").delay.reset();
  run_for(15min);
  expect_password("second");
}

// It is always three seconds behind: a newer position in each pass would never be reached.
TEST_F(PasswordTest, AChangeAndItsReversalEndWithAReplicaThatIsAlwaysBehind) {
  given_half_done_change();
  std::vector<std::string> changes;
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement.starts_with("ALTER USER IF EXISTS 'root'@'%'")) changes.push_back(statement);
  };
  bool ends = false;
  auto write = [&]() -> Awaitable<> {
    while (!ends) {
      mysql.write(mysql.at("demo-0").address);
      co_await loop.clock().sleep_for(100ms);
    }
  };
  mysql.at("demo-2").transactions_behind = 30;
  mysql.at("demo-2").delay.reset();
  scope.spawn(write());
  change_password("first");
  for (int i = 0; i < 60 && !(changes.size() == 1 && password_in_secret("revokedPassword").empty()); ++i) run_for(1s);
  EXPECT_EQ(password_in_secret("revokedPassword"), "") << status_text();
  EXPECT_EQ(mysql.at("demo-2").root_password, "first");
  EXPECT_EQ(changes.size(), 1U);
  change_password("third");
  for (int i = 0; i < 60 && password_in_secret() != "third"; ++i) run_for(1s);
  ends = true;
  EXPECT_EQ(password_in_secret(), "third") << status_text();
  EXPECT_EQ(password_in_secret("changePosition"), "");
  EXPECT_EQ(mysql.at("demo-2").root_password, "third");
  EXPECT_EQ(changes.size(), 2U);
  run_for(1s);
}

// A transaction of it would get the number of the one that was lost: the primary would seem to have everything.
TEST_F(PasswordTest, APrimaryThatLostTransactionsIsNotChangedBeforeItIsReplaced) {
  given_running(R"({"rootPassword": "first"})");
  for (int i = 0; i < 3; ++i) mysql.write(mysql.at("demo-0").address);
  const auto lost = mysql.at("demo-0").log.back();
  stop_operator();
  mysql.at("demo-0").log.pop_back();
  mysql.restart("demo-0");
  change_password();
  start_operator();
  run_for(5s);
  EXPECT_EQ(mysql.at("demo-0").log.size(), 2U) << status_text();
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("waits until demo-0 is writable"));
  for (int i = 0; i < 120 && primary() == "demo-0"; ++i) run_for(1s);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  run_for(10min);
  for (const auto& [name, one] : mysql.servers()) EXPECT_THAT(one.log, testing::Contains(lost)) << name;
  expect_password("second");
}

TEST_F(PasswordTest, APrimaryThatIsReadOnlyByItsSpecIsChangedUnlessItLacksTransactions) {
  given_running(R"({"rootPassword": "first"})");
  for (int i = 0; i < 3; ++i) mysql.write(mysql.at("demo-0").address);
  patch(R"({"spec": {"readOnly": true}})");
  run_for(1min);
  ASSERT_TRUE(mysql.at("demo-0").read_only);
  const auto lost = mysql.at("demo-0").log.back();
  mysql.at("demo-0").log.pop_back();
  change_password();
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first");
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("demo-0 lacks transactions that a replica has"));
  mysql.at("demo-0").log.push_back(lost);
  for (const auto* pod : {"demo-1", "demo-2"}) {
    mysql.at(pod).replica->io_error = 0;
    mysql.at(pod).replica->io = true;
  }
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "second") << status_text();
  EXPECT_EQ(password_in_secret(), "second");
}

TEST_F(PasswordTest, AChangeOfThePasswordDoesNotBeginWhileAReplicaDoesNotReplicate) {
  given_running(R"({"rootPassword": "first"})");
  mysql.at("demo-1").replica->sql_error = 1062;
  mysql.at("demo-1").replica->sql = false;
  change_password();
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first") << status_text();
  EXPECT_EQ(password_in_secret("pendingPassword"), "");
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("waits for demo-1, which does not replicate"));
  mysql.at("demo-1").replica->sql_error = 0;
  mysql.at("demo-2").append();  // an errant transaction
  mysql.at("demo-2").replica.reset();
  run_for(1min);
  EXPECT_EQ(mysql.at("demo-0").root_password, "first") << status_text();
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("waits for demo-2, which does not replicate"));
  mysql.at("demo-2").log.pop_back();
  run_for(10min);
  expect_password("second");
}

// The Secret has the only copy of it.
TEST_F(PasswordTest, VolumesThatWereKeptStartWithTheirPasswordAndAreChangedThen) {
  given_running(R"({"rootPassword": "first"})");
  EXPECT_TRUE(loop.run(server.api().remove(mysql_clusters, {"db", "demo"})));
  run_for(1min);
  ASSERT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-0"));
  ASSERT_FALSE(exists(kinds::stateful_sets, "demo"));
  given_cluster(R"({"rootPassword": "second"})");
  run_for(100ms);
  EXPECT_EQ(password_in_secret(), "first") << status_text();
  run_for(10min);
  expect_password("second");
  EXPECT_EQ(phase(), "Running") << status_text();
}

// It changes its own table first, and crashed before that was in its binary log: no replica gets it.
TEST_F(PasswordTest, AChangeThatIsNotInThePrimarysBinaryLogIsMadeAgain) {
  given_half_done_change();
  const auto leave_out = [](std::vector<Transaction>& log) {
    for (auto& one : log) one.root_password.clear();
  };
  for (const auto* pod : {"demo-0", "demo-1", "demo-2"}) leave_out(mysql.at(pod).log);
  leave_out(mysql.at("demo-2").replica->relay);
  int changes = 0;
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (statement.starts_with("ALTER USER IF EXISTS 'root'@'%'")) ++changes;
  };
  mysql.at("demo-2").delay.reset();
  run_for(10min);
  EXPECT_EQ(changes, 1);
  expect_password("second");
}

TEST_F(PasswordTest, AChangeThatWasLostWithThePrimaryIsMadeAgainInTheNextOne) {
  given_running(R"({"rootPassword": "first", "semiSync": false})");
  mysql.on_statement = [&](const std::string&, const std::string& statement) {
    if (!statement.starts_with("ALTER USER IF EXISTS 'root'@'%'")) return;
    mysql.on_statement = {};
    for (const auto* pod : {"demo-1", "demo-2"}) mysql.at(pod).replica->io = false;
  };
  change_password();
  for (int i = 0; i < 1000 && password_in_secret("changePosition").empty(); ++i) run_for(1ms);
  ASSERT_EQ(password_in_secret("changePosition"), "0-100-1") << status_text();
  mysql.at("demo-0").away = true;
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(mysql.at("demo-1").root_password, "second");
  EXPECT_EQ(mysql.at("demo-2").root_password, "second");
  EXPECT_THAT(condition_message("SpecAccepted"), HasSubstr("waits for demo-0"));
}

}  // namespace
}  // namespace hubferry::mysql::test
