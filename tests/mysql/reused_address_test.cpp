// Addresses are given again to other pods: a server of another cluster may answer at the address of one of this.
#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReusedAddressTest : public LastCopyTest {
 protected:
  /// From now on the server at the address of this pod is that of pod copy-N of another cluster. Two clusters may have
  /// the same root password: one restored from the other's backup with ref:// to its Secret.
  FakeServer& replace(const std::string& pod) {
    auto& stranger = mysql.at(pod);
    stranger.report_host = "copy-" + pod.substr(pod.rfind('-') + 1);
    stranger.accepts_replicas = false;  // they have a password of their own
    mysql.on_statement = [this](const std::string& at, const std::string& statement) {
      const bool changes = !statement.starts_with("SELECT ") && !statement.starts_with("SHOW ");
      if (changes && mysql.at(at).report_host.starts_with("copy-")) touched.push_back(statement);
    };
    return stranger;
  }

  std::vector<std::string> touched;  // statements that change a server of the other cluster
};

TEST_F(ReusedAddressTest, AnotherServerAtTheAddressOfAPodIsNotTouched) {
  given_running();
  auto& stranger = replace("demo-1");
  stranger.read_only = false;
  stranger.replica.reset();
  run_for(2min);
  EXPECT_THAT(touched, IsEmpty());
  EXPECT_EQ(condition("ReplicasHealthy"), "False NotReplicating") << status_text();
  EXPECT_THAT(condition_message("ReplicasHealthy"), HasSubstr("demo-1: server unreachable: another server answers"));
  EXPECT_EQ(primary(), "demo-0");
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
}

// Its probes say "writable", so nothing else would notice that the primary is gone.
TEST_F(ReusedAddressTest, APrimaryInWhosePlaceAnotherServerAnswersIsReplaced) {
  given_running();
  replace("demo-0");
  run_for(3min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_THAT(writers(), ElementsAre("demo-1"));
  EXPECT_THAT(touched, IsEmpty());
}

// The exporter tells the number of its server: with another one it is no answer.
TEST_F(ReusedAddressTest, AServerWithAnotherNumberIsNoticedByTheProbes) {
  given_running();
  replace("demo-0").id = 102;
  run_for(40s);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_THAT(touched, IsEmpty());
}

TEST_F(ReusedAddressTest, APrimaryThatAnswersAtItsAddressAgainStaysThePrimary) {
  given_running(R"({"replicas": 1})");
  replace("demo-0");
  run_for(2min);
  EXPECT_EQ(condition("PrimaryHealthy"), "False NoPrimary") << status_text();
  mysql.at("demo-0").report_host = "demo-0";
  run_for(2min);
  EXPECT_EQ(condition("PrimaryHealthy"), "True HeartbeatOK") << status_text();
  EXPECT_THAT(touched, IsEmpty());
}

// A replica of the other cluster looks as one of this: it follows a primary with the same number.
TEST_F(ReusedAddressTest, AServerIsNotScaledAwayWhileAnotherOneAnswersInThePlaceOfOneThatStays) {
  given_last_copy_on_demo_2();
  mysql.at("demo-1").replica->io = true;
  run_for(1min);
  replace("demo-1").accepts_replicas = true;
  patch(R"({"spec": {"replicas": 2}})");
  run_for(5min);
  EXPECT_TRUE(exists(kinds::pods, "demo-2")) << status_text();
  EXPECT_THAT(touched, IsEmpty());
}

TEST_F(ReusedAddressTest, NoVolumeIsDeletedWhileAnotherServerAnswersInThePlaceOfThePrimary) {
  given_running();
  server.faults().on({"delete", "persistentvolumeclaims"}).always().fail(500);
  patch(R"({"spec": {"replicas": 2}})");
  run_for(1min);
  ASSERT_EQ(phase(), "Scaling") << status_text();
  ASSERT_FALSE(exists(kinds::pods, "demo-2"));
  replace("demo-0");
  server.faults().clear();
  run_for(20s);
  EXPECT_TRUE(exists(kinds::persistent_volume_claims, "data-demo-2")) << status_text();
}

}  // namespace
}  // namespace hubferry::mysql::test
