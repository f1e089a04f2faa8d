#include "hubferry/kube/error.hpp"
#include "intercepting_api.hpp"
#include "state_test.hpp"

/// What the destination does not take, or is about to lose: quotas, objects that are too large, objects that are being
/// deleted. A reason and a message each, and nothing is lost on either hub.
namespace hubferry::relocator::test {
namespace {

/// A destination that answers some writes of one kind with an error.
class BadDestinationTest : public StateTest {
 protected:
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return std::make_shared<InterceptingApi>(network.connect(config), [this](kube::Api& real, kube::Request request) {
        return answer(real, std::move(request));
      });
    };
  }
  Awaitable<kube::Result<Object>> answer(kube::Api& real, kube::Request request) {
    const bool creates = request.verb == kube::Verb::create;
    const bool writes = creates || request.verb == kube::Verb::update;
    const bool passes = creates && !request.dry_run && passes_creates;
    if (refused && writes && !passes && request.resource == *refused) co_return error;
    co_return co_await real.call(std::move(request));
  }

  /// As the client understands that answer of a server to a write.
  void refuse(const kube::Resource& kind, int status, const std::string& reason, const std::string& message) {
    refused = kind;
    const json::object body{{"kind", "Status"}, {"reason", reason}, {"message", message}, {"code", status}};
    error = kube::as_answer_to_write(kube::error_from_status(status, json::serialize(body)));
  }

  void given_objects() {
    create(kube::resources::secrets,
           R"({"metadata": {"name": "pull", "namespace": "prod"}, "data": {"a": "YWJjZGVmZ2g="}})");
    create(ocm::sync_sets, R"({"metadata": {"name": "set", "namespace": "prod"},
                               "spec": {"clusterDeploymentRefs": [{"name": "c1"}]}})");
  }

  /// It stays on the source, paused, until the destination takes it.
  void expect_refusal_then_move(const std::string& message) {
    live_for(10min);
    EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy " + refused->kind + " prod/"));
    EXPECT_THAT(condition(), HasSubstr(message));
    EXPECT_THAT(events("MoveFailed"), Contains(HasSubstr(message)));
    EXPECT_TRUE(is_on_source());
    EXPECT_FALSE(is_on_destination());
    EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "r1");
    EXPECT_TRUE(on_source(kube::resources::secrets, "pull") && on_source(ocm::sync_sets, "set"));
    expect_no_deprovision();
    refused.reset();
    live_until([&] { return has_moved(); });
    expect_moved();
    EXPECT_TRUE(on_destination(kube::resources::secrets, "pull") && on_destination(ocm::sync_sets, "set"));
  }

  std::optional<kube::Resource> refused;
  bool passes_creates = false;
  kube::Error error;
};

class QuotaTest : public BadDestinationTest, public testing::WithParamInterface<kube::Resource> {};

TEST_P(QuotaTest, IsNamedAndTheMoveIsResumedWhenItIsRaised) {
  given_move();
  given_objects();
  refuse(GetParam(), 403, "Forbidden",
         GetParam().plural + R"( "x" is forbidden: exceeded quota: few, requested: n=1, used: n=9, limited: n=9)");
  expect_refusal_then_move("exceeded quota: few, requested: n=1, used: n=9, limited: n=9");
}

INSTANTIATE_TEST_SUITE_P(Of, QuotaTest,
                         testing::Values(kube::resources::secrets, ocm::sync_sets, ocm::cluster_deployments),
                         [](const auto& kind) { return kind.param.kind; });

TEST_F(BadDestinationTest, AMoveThatAQuotaStopsCanBeAborted) {
  given_move();
  given_objects();
  refuse(ocm::cluster_deployments, 403, "Forbidden", "exceeded quota: few");
  live_until([&] { return condition().starts_with("True MoveFailed"); });
  change(ocm::cluster_deployments, {"prod", "c1"}, R"({"metadata": {"labels": {"hive-instance": "stays"}}})");
  live_for(5min);
  expect_untouched();
  EXPECT_EQ(aborts("r1", "no_match"), 1);
}

TEST_F(BadDestinationTest, ASecretThatIsTooLargeIsNamed) {
  given_move();
  given_objects();
  refuse(kube::resources::secrets, 422, "Invalid",
         R"(Secret "pull" is invalid: data: Too long: must have at most 1048576 bytes)");
  expect_refusal_then_move("data: Too long: must have at most 1048576 bytes");
}

TEST_F(BadDestinationTest, ASyncSetThatIsTooLargeForARequestIsNamed) {
  given_move();
  given_objects();
  refuse(ocm::sync_sets, 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
  expect_refusal_then_move("limit is 3145728");
}

// The answer of a server that could not write to etcd: it may have happened, and has not.
TEST_F(BadDestinationTest, ASyncSetThatIsTooLargeForEtcdIsNamed) {
  given_move();
  given_objects();
  refuse(ocm::sync_sets, 500, "", "etcdserver: request is too large");
  expect_refusal_then_move("etcdserver: request is too large");
}

TEST_F(BadDestinationTest, AClusterDeploymentThatIsTooLargeForEtcdIsNamed) {
  given_move();
  given_objects();
  refuse(ocm::cluster_deployments, 500, "", "etcdserver: request is too large");
  expect_refusal_then_move("etcdserver: request is too large");
}

// Replaced is only what the server would take: it cannot be updated, and would be gone if it could not be created
// again.
TEST_F(BadDestinationTest, ACopyThatIsTooLargeToBeUpdatedIsNotDeleted) {
  given_move();
  given_objects();
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(kube::resources::secrets,
         R"({"metadata": {"name": "pull", "namespace": "prod", "labels": {"hubferry.io/relocated-from": ")" +
             identity(source.server) + R"("}}, "data": {"a": "b2xk"}})",
         &destination.server);
  const auto uid = std::string{on_destination(kube::resources::secrets, "pull")->uid()};
  refuse(kube::resources::secrets, 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
  passes_creates = true;  // it has grown in between: that it exists is said first
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy Secret prod/pull"));
  ASSERT_TRUE(on_destination(kube::resources::secrets, "pull"));
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->uid(), uid);
}

// It is equal, and gone a moment later.
TEST_F(BadDestinationTest, AnEqualObjectThatIsBeingDeletedOnTheDestinationIsNoCopy) {
  given_move();
  const auto pool = [](const std::string& more) {
    return R"({"metadata": {"name": "c1-worker", "namespace": "prod")" + more +
           R"(}, "spec": {"clusterDeploymentRef": {"name": "c1"}}})";
  };
  create(ocm::machine_pools, pool(""));
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(ocm::machine_pools, pool(R"(, "finalizers": ["example.com/held"])"), &destination.server);
  remove(ocm::machine_pools, {"prod", "c1-worker"}, &destination.server);
  live_for(1min);
  EXPECT_TRUE(is_on_source());
  EXPECT_FALSE(is_on_destination());
  EXPECT_THAT(condition(), HasSubstr("cannot copy MachinePool prod/c1-worker: it is being deleted on the destination"));
  change(ocm::machine_pools, {"prod", "c1-worker"}, R"({"metadata": {"finalizers": null}})", &destination.server);
  live_until([&] { return has_moved(); });
  expect_moved();
  EXPECT_TRUE(on_destination(ocm::machine_pools, "c1-worker"));
}

}  // namespace
}  // namespace hubferry::relocator::test
