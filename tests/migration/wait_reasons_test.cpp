#include "hubferry/kube/base64.hpp"
#include "hubferry/migration/phases.hpp"
#include "whole_world.hpp"

/// Whatever a migration waits for stands in its condition within two seconds, and no longer than it waits for it.
namespace hubferry::migration::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class WaitReasons : public testing::Test {
 protected:
  void put_kubeconfig(const std::string& hub, const std::string& text) {
    json::object patch{{"data", json::object{{"kubeconfig", kube::encode_base64(text)}}}};
    const kube::Key key{hub, "hub-kubeconfig"};
    auto patched = whole.world.run(whole.world.api("global").merge_patch(kube::resources::secrets, key, patch));
    EXPECT_TRUE(patched) << patched.error();
  }
  /// With a token that the hub does not know.
  std::string rejected_kubeconfig(const std::string& hub) {
    auto config = whole.world.world().admin_config(hub);
    config.token = "very-secret";
    config.client_certificate_pem.clear();
    config.client_key_pem.clear();
    return kube::to_kubeconfig(config);
  }
  void begin(const std::string& wanted) {
    whole.start_manager();
    whole.migrate("m1", {names[0]});
    ASSERT_TRUE(whole.run_until([&] { return whole.phase("m1") == wanted; })) << whole.describe("m1");
  }
  /// The message of the phase that the migration is in.
  std::string message() {
    const auto object = whole.world.global().object(managed_cluster_migrations, {"default", "m1"});
    const auto* condition = object ? kube::find_condition(*object, condition_of(whole.phase("m1"))) : nullptr;
    return condition == nullptr ? "" : std::string{kube::string_at(*condition, {"message"})};
  }
  void expect_within_two_seconds(const std::string& text) {
    EXPECT_TRUE(whole.run_until([&] { return message().find(text) != std::string::npos; }, 2s))
        << text << " is not in: " << message();
  }
  void expect_that_it_continues_within_two_seconds(const std::string& from) {
    EXPECT_TRUE(whole.run_until([&] { return whole.phase("m1") != from; }, 2s)) << message();
    whole.run_until_ended({"m1"});
    EXPECT_EQ(whole.phase("m1"), "Completed") << whole.describe("m1");
  }

  void must_delete() {
    auto removed = whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"}));
    EXPECT_TRUE(removed) << removed.error();
  }

  WholeWorld whole{2, 21};
  const ClusterNames names = whole.world.world().clusters();
};

TEST_F(WaitReasons, ASecretThatIsGarbageIsNamedAndItsRepairContinuesTheMigration) {
  const auto good = kube::to_kubeconfig(whole.world.world().admin_config("hub2"));
  put_kubeconfig("hub2", "token: very-secret\n");
  begin(phases::validating);
  expect_within_two_seconds("Secret hub2/hub-kubeconfig of the global hub");
  EXPECT_THAT(whole.describe("m1"), Not(HasSubstr("very-secret")));
  whole.world.run_for(1min);
  put_kubeconfig("hub2", good);
  expect_that_it_continues_within_two_seconds(phases::validating);
}

TEST_F(WaitReasons, ACredentialThatIsRejectedIsNamedWithItsSecretAndItsRepairContinuesTheMigration) {
  const auto good = kube::to_kubeconfig(whole.world.world().admin_config("hub1"));
  put_kubeconfig("hub1", rejected_kubeconfig("hub1"));
  begin(phases::validating);
  expect_within_two_seconds("hub 'hub1' rejects the credential of Secret hub1/hub-kubeconfig");
  EXPECT_THAT(whole.describe("m1"), Not(HasSubstr("very-secret")));
  whole.world.run_for(1min);
  put_kubeconfig("hub1", good);
  expect_that_it_continues_within_two_seconds(phases::validating);
}

TEST_F(WaitReasons, AHubThatDoesNotAnswerIsNamed) {
  whole.world.server("hub2").outage(true);
  begin(phases::validating);
  expect_within_two_seconds("hub 'hub2' does not answer");
  EXPECT_THAT(message(), Not(HasSubstr("'hub1'")));
}

TEST_F(WaitReasons, AManifestWorkThatTheAgentHasNotAppliedIsNamedAndNotThatItHasNotRegistered) {
  EXPECT_TRUE(whole.world.world().agents().remove(names[0]));
  begin(phases::registering);
  expect_within_two_seconds("1 cluster whose agent has not applied the ManifestWork with the target's bootstrap");
  EXPECT_THAT(message(), Not(HasSubstr("has not registered"))) << "it was not detached: that is not expected of it";
}

TEST_F(WaitReasons, AnAgentThatHasNotRegisteredIsNamedWithWhatToLookAt) {
  begin(phases::registering);
  ASSERT_TRUE(whole.run_until([&] { return !whole.is_accepted("hub1", names[0]); })) << message();
  EXPECT_TRUE(whole.world.world().agents().remove(names[0]));
  expect_within_two_seconds(
      "1 cluster whose agent has not registered on hub hub2 (no certificate request yet, or it is "
      "pending");
}

TEST_F(WaitReasons, AFinalizerThatHoldsADeletedClusterIsNamed) {
  const kube::Key key{"", names[0]};
  json::object held{{"metadata", json::object{{"finalizers", json::array{"example.com/hold"}}}}};
  EXPECT_TRUE(whole.world.run(whole.world.api("hub1").merge_patch(ocm::managed_clusters, key, std::move(held))));
  begin(phases::cleaning);
  const auto is_being_deleted = [&] {
    const auto object = whole.world.server("hub1").object(ocm::managed_clusters, key);
    return object && object->is_being_deleted();
  };
  ASSERT_TRUE(whole.run_until(is_being_deleted)) << message();
  expect_within_two_seconds("1 cluster whose ManagedCluster on hub hub1 is being deleted, and held by the finalizers ");
  expect_within_two_seconds("example.com/hold");
}

// The worst of all waits: the cluster has no hub meanwhile.
TEST_F(WaitReasons, AnAgentThatDoesNotReturnInARollbackIsNamed) {
  begin(phases::registering);
  ASSERT_TRUE(whole.run_until([&] { return !whole.is_accepted("hub1", names[0]); })) << message();
  EXPECT_TRUE(whole.world.world().agents().remove(names[0]));
  EXPECT_TRUE(whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
  ASSERT_TRUE(whole.run_until([&] { return whole.is_accepted("hub1", names[0]); })) << message();
  EXPECT_EQ(whole.phase("m1"), phases::rollbacking);
  expect_within_two_seconds(
      "0 of 1 cluster back; waiting: 1 cluster whose agent has not renewed its lease on hub hub1 "
      "since that accepts it again");
}

// What it brings about would stay: a rollback deletes nothing before.
TEST_F(WaitReasons, AWriteWithoutAnAnswerThatARollbackWaitsForIsNamed) {
  whole.world.server("hub2").faults().on({"create", "managedclusters"}).reset_after();
  begin(phases::registering);
  must_delete();
  EXPECT_TRUE(whole.run_until([&] { return whole.phase("m1") == phases::rollbacking; }, 1min));
  expect_within_two_seconds("1 cluster whose last write on hub hub2 was not answered, and may still take effect");
  whole.run_until_ended({"m1"}, 10min);
  EXPECT_EQ(whole.phase("m1"), "gone");
}

TEST_F(WaitReasons, AWriteOfTheMigrationsOwnWithoutAnAnswerIsNamed) {
  whole.world.server("hub1").faults().on({"create", "klusterletconfigs"}).reset_after();
  begin(phases::deploying);
  must_delete();
  EXPECT_TRUE(whole.run_until(
      [&] { return message().find("the last write on hub hub1 was not answered") != std::string::npos; }, 50s))
      << message();
  whole.run_until_ended({"m1"}, 10min);
  EXPECT_EQ(whole.phase("m1"), "gone");
}

}  // namespace
}  // namespace hubferry::migration::test
