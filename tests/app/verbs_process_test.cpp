// The verbs as people start them, against a simulated global hub. No manager runs: the tests write the status.
#include <gmock/gmock.h>

#include "app/cli/server_client.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/sim/crds.hpp"
#include "migration_samples.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::app {
namespace {

namespace json = kube::json;
using test::Process;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const kube::Resource& kind = migration::managed_cluster_migrations;

class VerbsProcess : public testing::Test {
 protected:
  VerbsProcess() {
    served_.run([](sim::Server& server, const kube::Env& env) { return sim::install_crds(server.api(), env); });
    json::object space{{"metadata", json::object{{"name", "hubferry-system"}}}};
    loop_.run(api_.create(kube::resources::namespaces, space)).value();
  }

  std::unique_ptr<Process> start(std::vector<std::string> words) {
    words.insert(words.begin(), test::hubferry_binary());
    words.push_back("--kubeconfig=" + config_);
    return std::make_unique<Process>(words);
  }
  struct Ended {
    int code;
    std::string out;
    std::string err;
  };
  Ended run(std::vector<std::string> words) {
    const auto process = start(std::move(words));
    const int code = process->wait();
    return {code, process->out(), process->err()};
  }
  void add(const std::string& name, const std::string& status, json::object annotations = {}) {
    auto object = migration_object(name, "");
    object["metadata"].as_object()["annotations"] = std::move(annotations);
    loop_.run(api_.create(kind, object)).value();
    if (!status.empty()) set({"default", name}, status);
  }
  void set(const kube::Key& key, const std::string& status) {
    json::object patch{{"status", json::parse(status)}};
    loop_.run(api_.merge_patch(kind, key, patch, "status")).value();
  }
  kube::Object get(const kube::Key& key) { return loop_.run(api_.get(kind, key)).value(); }
  std::vector<kube::Object> all() { return loop_.run(api_.list_all(kind, {})).value(); }

  sim::Served served_;
  test::TemporaryDirectory directory_;
  std::string config_ = directory_.write("kubeconfig", served_.kubeconfig_for(sim::admin())).string();
  std::string flags_ = " --kubeconfig " + config_;  // of the commands that texts suggest
  ServerClient client_{kube::load_kubeconfig(config_)};
  kube::Api& api_ = client_.api();
  test::RealLoop loop_;
};

TEST_F(VerbsProcess, MigrateCreatesAMigrationOnceAndSaysSoWhenItIsRepeated) {
  const std::vector<std::string> command{"migrate", "--from", "hub1", "--to", "hub2", "c2", "c1", "--name", "m"};
  const auto first = run(command);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out,
            "Migration hubferry-system/m created: 2 clusters from hub1 to hub2. Watch it: hubferry status m -n "
            "hubferry-system --watch" +
                flags_ + "\n");
  const auto created = get({"hubferry-system", "m"});
  EXPECT_EQ(created.find({"spec"})->as_object(),
            json::parse(R"({"from": "hub1", "to": "hub2", "includedManagedClusters": ["c2", "c1"]})").as_object());
  const auto again = run(command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("exists already with the same spec (New 0/2): nothing was changed. Watch it:"));
  EXPECT_EQ(get({"hubferry-system", "m"}).resource_version(), created.resource_version());
}

TEST_F(VerbsProcess, MigrateNeverChangesAnotherMigrationOfTheSameName) {
  ASSERT_EQ(run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "--name", "m"}).code, 0);
  const auto before = get({"hubferry-system", "m"});
  const auto other = run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "c2", "--name", "m"});
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.err,
            "hubferry migrate: migration hubferry-system/m exists already, and is another one (1 cluster from hub1 to "
            "hub2): use another --name\n");
  EXPECT_EQ(get({"hubferry-system", "m"}).resource_version(), before.resource_version());
}

TEST_F(VerbsProcess, MigrateWithoutANameFindsItsOwnMigrationAgain) {
  const std::vector<std::string> command{"migrate", "--from", "hub1", "--to", "hub2", "--placement", "leaving"};
  EXPECT_THAT(run(command).out, HasSubstr("created: the clusters of Placement leaving from hub1 to hub2"));
  EXPECT_THAT(run(command).out, HasSubstr("exists already"));
  EXPECT_THAT(all(), SizeIs(1));
}

TEST_F(VerbsProcess, MigrateReadsAFileOrStandardInput) {
  const auto text = json::serialize(migration_object("from-file", ""));
  const auto file = directory_.write("m.json", text).string();
  const auto read = run({"migrate", "-f", file});
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("Migration default/from-file created: 4 clusters"));
  Process piped{{"sh", "-c", "\"$0\" migrate -f - -n hubferry-system --kubeconfig=\"$1\" < \"$2\"",
                 test::hubferry_binary(), config_, file}};
  EXPECT_EQ(piped.wait(), 0) << piped.err();
  EXPECT_THAT(piped.out(), HasSubstr("Migration hubferry-system/from-file created"));
  const auto wrong = run({"migrate", "-f", directory_.write("x.yaml", "kind: Pod\napiVersion: v1\n").string()});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("x.yaml: it does not contain a ManagedClusterMigration"));
}

TEST_F(VerbsProcess, MigrateRefusesWhatMakesNoSense) {
  EXPECT_EQ(run({"migrate", "--from", "hub1", "--to", "hub2"}).code, 2);
  EXPECT_EQ(run({"migrate", "--from", "hub1", "c1"}).code, 2);
  EXPECT_EQ(run({"migrate", "--from", "hub1", "--to", "hub1", "c1"}).code, 2);
  EXPECT_EQ(run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "-l", "a=b"}).code, 2);
  EXPECT_EQ(run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "--dry-run", "--wait"}).code, 2);
  EXPECT_EQ(run({"migrate", "-f", "-", "c1"}).code, 2);
  EXPECT_EQ(run({"migrate", "--from", "hub1", "--to", "hub2", "NoName"}).code, 2);
  const auto no_hub = run({"migrate", "--from", "hub1", "--to", "hubX", "c1"});
  EXPECT_EQ(no_hub.code, 2);
  EXPECT_THAT(no_hub.err, HasSubstr("--to: 'hubX' is not a valid name"));
  const auto nowhere = run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "-n", "nowhere"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("namespace nowhere does not exist"));
  EXPECT_THAT(all(), SizeIs(0));
}

TEST_F(VerbsProcess, MigrateWithDryRunShowsThePlanAndCreatesNothing) {
  const auto planned = run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "--dry-run"});
  EXPECT_EQ(planned.code, 1) << "there are no hubs";
  EXPECT_THAT(planned.out, HasSubstr("Plan: hub1 -> hub2"));
  EXPECT_THAT(all(), SizeIs(0));
}

TEST_F(VerbsProcess, MigrateWithWaitEndsWithTheMigrationAndItsResult) {
  const std::vector<std::string> command{"migrate", "--from", "hub1", "--to", "hub2", "c1", "--name", "m", "--wait"};
  const auto waiting = start(command);
  waiting->await_output_text("hubferry-system/m New");
  set({"hubferry-system", "m"}, completed_status);
  EXPECT_EQ(waiting->wait(), 0) << waiting->err();
  EXPECT_THAT(waiting->out(),
              AllOf(HasSubstr("created: 1 cluster"), HasSubstr("Completed 4/4"), Not(HasSubstr("Watch it"))));
  set({"hubferry-system", "m"}, failed_status);
  const auto failed = run(command);
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.out, HasSubstr("exists already with the same spec (Failed"));
}

TEST_F(VerbsProcess, CancelDeletesAMigrationThatRunsAndNoOther) {
  add("runs", registering_status);
  add("done", completed_status);
  const auto cancelled = run({"cancel", "runs"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_EQ(
      cancelled.out,
      "Migration default/runs cancelled: its clusters are rolled back to hub1, except for those that have arrived; "
      "then it is deleted. Watch it: hubferry status runs -n default --watch" +
          flags_ + "\n");
  add("fresh", "");
  EXPECT_EQ(run({"cancel", "fresh"}).out,
            "Migration default/fresh cancelled: nothing was changed yet; it is deleted\n");
  const auto refused = run({"cancel", "done"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("hubferry cancel: cannot cancel migration default/done: it has ended (Completed)"));
  ASSERT_THAT(all(), SizeIs(1));
  EXPECT_EQ(all().front().name(), "done");
  EXPECT_THAT(run({"cancel", "doen"}).err, HasSubstr("did you mean done?"));
  EXPECT_EQ(run({"cancel"}).code, 2);
}

// The write has happened, but nobody could say so: repeating it would find it done.
TEST_F(VerbsProcess, AVerbWhoseAnswerWasLostSaysWhatItHasDone) {
  const auto lose = [&](const char* verb) {
    served_.on_loop([&] { served_.server().faults().on({verb, "managedclustermigrations"}).times(1).reset_after(); });
  };
  lose("create");
  EXPECT_THAT(run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "--name", "m"}).out,
              HasSubstr("Migration hubferry-system/m created: 1 cluster"));
  add("runs", registering_status);
  lose("delete");
  const auto cancelled = run({"cancel", "runs"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_THAT(cancelled.out, HasSubstr("default/runs cancelled: its clusters are rolled back"));
  add("failed",
      R"({"phase": "Failed", "rollbackStage": "Registering", "clusters": {"total": 4, "failed": 4},
          "conditions": [{"type": "ResourceRolledBack", "status": "False", "reason": "LeftBehind", "message": "hub2",
                          "lastTransitionTime": "2030-01-01T00:00:15Z"}]})");
  lose("patch");
  EXPECT_THAT(run({"rollback", "failed"}).out, HasSubstr("default/failed: its rollback is retried"));
}

// An exported variable of yesterday must not give up a hub today.
TEST_F(VerbsProcess, WhatAVerbDoesIsNotDecidedByTheEnvironment) {
  for (const auto* verb : {"migrate", "cancel", "retry", "rollback", "hub", "doctor", "status"}) {
    const auto help = run({verb, "--help"}).out;
    EXPECT_THAT(help, HasSubstr("$HUBFERRY_KUBECONFIG"));
    EXPECT_EQ(help.find("$HUBFERRY_"), help.rfind("$HUBFERRY_")) << help;
  }
}

TEST_F(VerbsProcess, AVerbThatDoesNotKnowWhatItHasDoneSaysSo) {
  add("runs", registering_status);
  const auto lose = [&](const char* verb) {
    served_.on_loop([&] {
      auto& faults = served_.server().faults();
      faults.on({verb, "managedclustermigrations"}).times(1).reset_after();
      faults.on({"get", "managedclustermigrations"}).times(20).fail(403);
    });
  };
  lose("delete");
  const auto cancelled = run({"cancel", "runs", "-n", "default"});
  EXPECT_EQ(cancelled.code, 1) << cancelled.out;
  EXPECT_THAT(cancelled.err, HasSubstr("it is unknown whether the request to cancel migration default/runs arrived"));
  served_.on_loop([&] { served_.server().faults().clear(); });
  lose("create");
  const auto created = run({"migrate", "--from", "hub1", "--to", "hub2", "c1", "--name", "m"});
  EXPECT_EQ(created.code, 1) << created.out;
  EXPECT_THAT(created.err, HasSubstr("it is unknown whether migration hubferry-system/m was created"));
}

TEST_F(VerbsProcess, SuggestedCommandsReachTheSameServer) {
  add("runs", registering_status);
  const auto context = kube::load_kubeconfig(config_).name;
  EXPECT_THAT(run({"cancel", "runs", "--context", context}).out,
              HasSubstr(" --watch" + flags_ + " --context " + context + "\n"));
}

// The manager's finalizer holds it until it has been rolled back.
TEST_F(VerbsProcess, CancellingTwiceSaysThatItIsBeingCancelledAlready) {
  auto object = migration_object("m", "");
  object["metadata"].as_object()["finalizers"] = json::array{migration::names::finalizer};
  loop_.run(api_.create(kind, object)).value();
  set({"default", "m"}, registering_status);
  EXPECT_THAT(run({"cancel", "m"}).out, HasSubstr("default/m cancelled: "));
  const auto again = run({"cancel", "m"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("default/m: it is being cancelled already. Watch it:"));
}

TEST_F(VerbsProcess, RollbackRequestsWhatWasLeftBehindOnce) {
  using namespace migration::names;
  add("m",
      R"({"phase": "Failed", "rollbackStage": "Registering", "clusters": {"total": 4, "failed": 4},
          "conditions": [{"type": "ResourceRolledBack", "status": "False", "reason": "LeftBehind", "message": "hub2",
                          "lastTransitionTime": "2030-01-01T00:00:15Z"}]})",
      {{leave_annotation, "hub2"}, {"other", "stays"}});
  const auto requested = run({"rollback", "m"});
  EXPECT_EQ(requested.code, 0) << requested.err;
  EXPECT_EQ(
      requested.out,
      "Migration default/m: its rollback is retried. Watch it: hubferry status m -n default --watch" + flags_ + "\n");
  const auto object = get({"default", "m"});
  EXPECT_EQ(object.annotation(request_annotation), rollback_request);
  EXPECT_EQ(object.annotation(leave_annotation), "");
  EXPECT_EQ(object.annotation("other"), "stays");
  EXPECT_THAT(run({"rollback", "m"}).out, HasSubstr("requested already"));
  EXPECT_EQ(get({"default", "m"}).resource_version(), object.resource_version());
  // Somebody leaves it behind once more before the manager has seen the request.
  json::object again{{"metadata", json::object{{"annotations", json::object{{leave_annotation, "hub2"}}}}}};
  loop_.run(api_.merge_patch(kind, {"default", "m"}, again)).value();
  EXPECT_THAT(run({"rollback", "m"}).out, HasSubstr("its rollback is retried"));
  EXPECT_EQ(get({"default", "m"}).annotation(leave_annotation), "");
  // Beside a request, hub2 would be called lost: only the flag says that.
  add("lost", R"({"phase": "Cleaning"})", {{leave_annotation, "hub2 , hub1/a,hub2/b"}});
  EXPECT_THAT(run({"rollback", "lost"}).out, HasSubstr("clusters that hub2 has lost return to hub1"));
  EXPECT_EQ(get({"default", "lost"}).annotation(leave_annotation), "hub1/a");
  EXPECT_EQ(run({"rollback", "lost", "--target-lost"}).code, 0);
  EXPECT_EQ(get({"default", "lost"}).annotation(leave_annotation), "hub1/a,hub2");
  EXPECT_THAT(run({"rollback", "lost", "--target-lost"}).out, HasSubstr("requested already"));
  add("done", completed_status);
  EXPECT_THAT(run({"rollback", "done"}).err, HasSubstr("it has completed: to move its clusters back"));
}

TEST_F(VerbsProcess, RetryMigratesWhatFailedOnce) {
  add("m",
      R"({"phase": "Failed", "rollbackStage": "Registering", "clusters": {"total": 4, "migrated": 2, "failed": 2}})");
  const auto failed = get({"default", "m"});
  json::object owner{{"apiVersion", kind.api_version()}, {"kind", kind.kind}, {"name", "m"}, {"uid", failed.uid()}};
  json::object ledger{
      {"metadata",
       json::object{{"name", "m"}, {"namespace", "default"}, {"ownerReferences", json::array{std::move(owner)}}}},
      {"data", json::object{{"all-clusters", R"(["c1","c2","c3","c4"])"}, {"success", R"(["c1","c3"])"}}}};
  loop_.run(api_.create(kube::resources::config_maps, ledger)).value();
  const auto retried = run({"retry", "m"});
  EXPECT_EQ(retried.code, 0) << retried.err;
  EXPECT_EQ(retried.out,
            "Migration default/m-retry created: 2 clusters from hub1 to hub2. Watch it: hubferry status m-retry -n "
            "default --watch" +
                flags_ + "\n");
  EXPECT_EQ(*get({"default", "m-retry"}).find({"spec", "includedManagedClusters"}), json::parse(R"(["c2","c4"])"));
  EXPECT_EQ(get({"default", "m"}).resource_version(), failed.resource_version());
  EXPECT_THAT(run({"retry", "m"}).out, HasSubstr("m-retry exists already with the same spec"));
  const auto running = run({"retry", "m-retry"});
  EXPECT_EQ(running.code, 1);
  EXPECT_THAT(running.err, HasSubstr("cannot retry migration default/m-retry: it has not ended (new)"));
}

// The ledger of an earlier migration of the same name has other clusters.
TEST_F(VerbsProcess, RetryDoesNotTrustTheLedgerOfAnother) {
  add("m", R"({"phase": "Failed", "rollbackStage": "Registering", "clusters": {"total": 4, "failed": 4}})");
  json::object ledger{{"metadata", json::object{{"name", "m"}, {"namespace", "default"}}},
                      {"data", json::object{{"all-clusters", R"(["x"])"}}}};
  loop_.run(api_.create(kube::resources::config_maps, ledger)).value();
  const auto refused = run({"retry", "m"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("is missing: it is unknown which clusters failed"));
}

TEST_F(VerbsProcess, AsAPluginOfKubectlItNamesItselfSo) {
  const auto link = directory_.file("kubectl-hubferry");
  std::filesystem::create_symlink(test::hubferry_binary(), link);
  Process help{{link, "status", "--help"}};
  EXPECT_EQ(help.wait(), 0);
  EXPECT_THAT(help.out(),
              AllOf(HasSubstr("usage: kubectl hubferry status"),
                    HasSubstr("\n  kubectl hubferry status move-three --watch"), Not(HasSubstr("  hubferry status"))));
  Process wrong{{link, "sttaus"}};
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_THAT(wrong.err(),
              AllOf(HasSubstr("kubectl hubferry: unknown command"), HasSubstr("'kubectl hubferry --help'")));
}

}  // namespace
}  // namespace hubferry::app
