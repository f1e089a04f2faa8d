#include <gmock/gmock.h>
#include <boost/json/serialize.hpp>

#include "sim/served_test.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Real kubectl against a server in this process. Debian's is version 1.20: no newer flag is used.
class KubectlTest : public testing::Test {
 protected:
  Ran kubectl(const std::string& arguments) {
    return run("HOME=" + directory_.path().string() + " KUBECONFIG=" + config_.string() + " kubectl " + arguments);
  }
  void must(const std::string& arguments) {
    const auto ran = kubectl(arguments);
    EXPECT_EQ(ran.status, 0) << "kubectl " << arguments << "\n" << ran.output;
  }
  void install_widgets() {
    must("apply -f " + directory_.write("crd.json", boost::json::serialize(widget_definition())).string());
    must("wait --for=condition=Established --timeout=20s crd/widgets.example.com");
  }
  /// 1.27 or later.
  bool is_recent() { return kubectl("auth --help").output.find("whoami") != std::string::npos; }
  std::string manifest(const std::string& name, int size) {
    return directory_
        .write(name + ".yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: " + name +
                                   "\n  namespace: default\nspec:\n  size: " + std::to_string(size) + "\n")
        .string();
  }

  const std::string widget_path = "/apis/example.com/v1/namespaces/default/widgets/a";
  Served served_;
  test::TemporaryDirectory directory_;
  std::filesystem::path config_ = directory_.write("kubeconfig", served_.kubeconfig_for(admin()));
};

TEST_F(KubectlTest, ATourFromApplyToDelete) {
  install_widgets();
  EXPECT_THAT(kubectl("api-resources").output, HasSubstr("widgets"));
  EXPECT_THAT(kubectl("version").output, HasSubstr("hubferry-sim"));

  must("apply -f " + manifest("a", 3));
  const auto table = kubectl("get wd");
  EXPECT_THAT(table.output, HasSubstr("NAME   SIZE   READY"));
  EXPECT_THAT(table.output, HasSubstr("a      3"));
  EXPECT_THAT(kubectl("get widgets -A").output, HasSubstr("NAMESPACE"));
  EXPECT_THAT(kubectl("get widget a -o jsonpath={.spec.colour}").output, HasSubstr("red"));
  EXPECT_THAT(kubectl("describe widget a").output, HasSubstr("Colour:  red"));

  must("patch widget a --type=merge -p '{\"spec\":{\"size\":7}}'");
  must("patch widget a --type=json -p '[{\"op\":\"add\",\"path\":\"/spec/code\",\"value\":\"abc\"}]'");
  const auto version = kubectl("get widget a -o jsonpath={.metadata.resourceVersion}").output;
  const auto ready = directory_.write("ready.json", R"({"apiVersion": "example.com/v1", "kind": "Widget", "metadata":
    {"name": "a", "namespace": "default", "resourceVersion": ")" +
                                                        version + R"("}, "spec": {"size": 1},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]}})");
  must("replace --raw " + widget_path + "/status -f " + ready.string());
  must("wait --for=condition=Ready --timeout=20s widget/a");
  EXPECT_THAT(kubectl("get widget a").output, HasSubstr("True"));
  must("apply -f " + manifest("a", 8));
  EXPECT_THAT(kubectl("get widget a -o jsonpath={.spec.code}{.spec.size}").output, HasSubstr("abc8"));

  const auto invalid = kubectl("apply -f " + manifest("bad", 1000));
  EXPECT_NE(invalid.status, 0);
  EXPECT_THAT(invalid.output, HasSubstr("should be less than or equal to 100"));

  const auto config_map =
      directory_.write("c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {x: '1'}\n");
  must("create -f " + config_map.string());
  must("label configmap c team=blue");
  must("patch configmap c -p '{\"data\":{\"y\":\"2\"}}'");
  EXPECT_THAT(kubectl("get configmap -l team=blue -o name").output, HasSubstr("configmap/c"));
  EXPECT_THAT(kubectl("get nothing").output, HasSubstr("the server doesn't have a resource type \"nothing\""));
  EXPECT_THAT(kubectl("get widget none").output, HasSubstr("widgets.example.com \"none\" not found"));

  must("delete widget a --timeout=20s");
  EXPECT_THAT(kubectl("get widgets").output, HasSubstr("No resources found"));
  must("apply -f " + directory_.write("n.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n").string());
  must("delete namespace space --timeout=20s");
}

TEST_F(KubectlTest, DescribeShowsTheEventsOfControllers) {
  install_widgets();
  must("apply -f " + manifest("a", 3));
  const auto uid = kubectl("get widget a -o jsonpath={.metadata.uid}").output;
  const auto event = directory_.write("event.json", R"({"apiVersion": "events.k8s.io/v1", "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"}, "eventTime": "2030-01-01T00:00:00.000000Z", "type": "Normal",
    "reason": "Painted", "action": "Paint", "note": "it is red now", "reportingController": "painter",
    "reportingInstance": "p-0", "regarding": {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a",
    "namespace": "default", "uid": ")" + uid + "\"}}");
  must("create -f " + event.string());
  EXPECT_THAT(kubectl("describe widget a").output, HasSubstr("it is red now"));
  EXPECT_THAT(kubectl("get events").output, HasSubstr("Painted"));
}

// Without a file kubectl sends protobuf for the built-in kinds.
TEST_F(KubectlTest, CreateWorksWithoutAFileOrReportsWhyNot) {
  must("create namespace space");
  must("create configmap c -n space --from-literal=x=1");
  EXPECT_EQ(kubectl("get configmap c -n space -o jsonpath={.data.x}").output, "1");
  must("create secret generic s -n space --from-literal=password=hidden");
  EXPECT_EQ(kubectl("get secret s -n space -o jsonpath={.data.password}").output, "aGlkZGVu");
  must("create serviceaccount robot -n space");
  must("create clusterrole reader --verb=get,list --resource=configmaps");
  EXPECT_EQ(kubectl("get clusterrole reader -o jsonpath={.rules[0].verbs[1]}").output, "list");
  must("create rolebinding robots -n space --clusterrole=reader --serviceaccount=space:robot");
  EXPECT_THAT(kubectl("create token robot -n space --duration 1h").output, HasSubstr("."));
  EXPECT_THAT(kubectl("auth can-i list configmaps -n space").output, HasSubstr("yes"));
  const auto refused = kubectl("create deployment d --image=none");
  if (refused.status != 0) EXPECT_THAT(refused.output, HasSubstr("send JSON")) << refused.output;
}

TEST_F(KubectlTest, ServerSideApplyNamesTheConflictingManager) {
  install_widgets();
  must("apply --server-side --field-manager=one -f " + manifest("a", 3));
  const auto refused = kubectl("apply --server-side --field-manager=two -f " + manifest("a", 4));
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, HasSubstr("conflict with \"one\": .spec.size"));
  must("apply --server-side --field-manager=two --force-conflicts -f " + manifest("a", 4));
  EXPECT_THAT(kubectl("get --raw " + widget_path).output, HasSubstr("\"manager\":\"two\""));
}

TEST_F(KubectlTest, AWatchPrintsEventsAsTheyCome) {
  install_widgets();
  must("apply -f " + manifest("a", 1));
  const auto script =
      "(sleep 1; kubectl delete widget a >/dev/null) & "
      "timeout 5 kubectl get widgets -w --output-watch-events | head -3; wait";
  const auto ran =
      run("HOME=" + directory_.path().string() + " KUBECONFIG=" + config_.string() + " sh -c '" + script + "'");
  EXPECT_THAT(ran.output, HasSubstr("ADDED")) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("DELETED"));
}

TEST_F(KubectlTest, TokensAndCertificatesIdentifyTheUserAndItsPermissions) {
  config_ = directory_.write("carol", served_.kubeconfig_for({"carol", {"guests"}, {}}, true));
  const auto refused = kubectl("get secrets");
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, HasSubstr("User \"carol\" cannot list resource \"secrets\""));
  config_ = directory_.write("broken", [&] {
    auto text = served_.kubeconfig_for(admin());
    const auto at = text.find("token:") + 10;
    return text.replace(at, 3, "bad");
  }());
  EXPECT_THAT(kubectl("get secrets").output, Not(HasSubstr("No resources")));
}

TEST_F(KubectlTest, ExplainShowsTheSchemaOfACustomKind) {
  if (!is_recent()) GTEST_SKIP() << "kubectl before 1.27 reads OpenAPI v2 only";
  install_widgets();
  const auto kind = kubectl("explain widgets");
  EXPECT_EQ(kind.status, 0) << kind.output;
  EXPECT_THAT(kind.output, AllOf(HasSubstr("GROUP:      example.com"), HasSubstr("KIND:       Widget"),
                                 HasSubstr("spec\t<Object>"), HasSubstr("metadata\t<Object>")));
  const auto field = kubectl("explain widgets.spec.size");
  EXPECT_EQ(field.status, 0) << field.output;
  EXPECT_THAT(field.output, HasSubstr("FIELD: size <integer>"));
  EXPECT_NE(kubectl("explain widgets.spec.nonsense").status, 0);
  EXPECT_THAT(kubectl("explain pods").output, HasSubstr("KIND:       Pod"));
  // kubectl asks the same documents whether the server knows --dry-run=server and validates fields.
  must("apply --dry-run=server -f " + manifest("a", 3));
  must("apply -f " + manifest("a", 3));
}

TEST_F(KubectlTest, WhoamiNamesTheUser) {
  if (!is_recent()) GTEST_SKIP() << "kubectl before 1.27 has no auth whoami";
  const auto shown = kubectl("auth whoami");
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_THAT(shown.output, AllOf(HasSubstr(admin().name), HasSubstr("system:masters")));
}

TEST_F(KubectlTest, CertificatesAreApprovedAndDenied) {
  for (const auto* name : {"good", "bad"}) {
    const std::string text = R"({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
      "metadata": {"name": ")" +
                             std::string{name} + R"("}, "spec": {"signerName": "example.com/signer",
      "request": "LS0t", "expirationSeconds": 7200, "usages": ["client auth"]}})";
    must("create -f " + directory_.write(std::string{name} + ".json", text).string());
  }
  const auto pending = kubectl("get csr");
  EXPECT_THAT(pending.output, AllOf(HasSubstr("SIGNERNAME"), HasSubstr("REQUESTOR"), HasSubstr("CONDITION"),
                                    HasSubstr("example.com/signer"), HasSubstr("2h"), HasSubstr("Pending")));
  must("certificate approve good");
  must("certificate deny bad");
  const auto decided = kubectl("get csr").output;
  EXPECT_THAT(decided, AllOf(HasSubstr("Approved"), HasSubstr("Denied"), Not(HasSubstr("Pending"))));
  EXPECT_EQ(kubectl("get csr good -o jsonpath={.spec.request}").output, "LS0t") << "the spec stays";
  EXPECT_THAT(kubectl("get csr good -o jsonpath={.status.conditions[0].lastUpdateTime}").output, HasSubstr("T"));
}

}  // namespace
}  // namespace hubferry::sim
