#include "hubferry/hubagent/carried_resources.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "hubferry/kube/config.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {
namespace {

using testing::HasSubstr;

std::string complaint(std::string_view text) {
  try {
    parse_carried_resources(text, "the ConfigMap");
  } catch (const kube::ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(CarriedResources, AUserAddsAKindOfTheirOwn) {
  const auto table = parse_carried_resources(R"(
carriedResources:
- group: example.com
  version: v1
  resource: widgets
  kind: Widget
  all: true
  withStatus: true
  references:
  - {path: "spec.secretName", version: v1, resource: secrets, kind: Secret}
)",
                                             "test");
  ASSERT_EQ(table.size(), default_carried_resources().size() + 1);
  EXPECT_EQ(table.back().resource, (kube::Resource{"example.com", "v1", "widgets", "Widget", true}));
  EXPECT_TRUE(table.back().all);
  EXPECT_TRUE(table.back().with_status);
  ASSERT_EQ(table.back().references.size(), 1U);
  EXPECT_EQ(table.back().references[0].resource, kube::resources::secrets);
}

TEST(CarriedResources, AnEntryForAKnownKindAddsItsRules) {
  const auto table = parse_carried_resources(
      R"({"carriedResources": [{"version": "v1", "resource": "secrets", "kind": "Secret", "names": ["{cluster}-extra"]}]})",
      "test");
  EXPECT_EQ(table.size(), default_carried_resources().size());
  const auto secrets = std::ranges::find(table, kube::resources::secrets, &CarriedKind::resource);
  ASSERT_NE(secrets, table.end());
  EXPECT_EQ(secrets->names.back(), "{cluster}-extra");
  EXPECT_EQ(secrets->names.size(), 5U);
}

TEST(CarriedResources, AnErrorNamesTheField) {
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint("carriedResources: [{version: v1}]"), HasSubstr("carriedResources[0].resource: is missing"));
  EXPECT_THAT(complaint("carriedResources: [{version: v1, resource: a, kind: A}]"), HasSubstr("selects nothing"));
  EXPECT_THAT(complaint("carriedResources: [{version: v1, resource: a, kind: A, scope: Odd, all: true}]"),
              HasSubstr("scope: must be"));
  EXPECT_THAT(complaint("carriedResources: [{version: v1, resource: a, kind: A, scope: Cluster, all: true}]"),
              HasSubstr("only be selected by the name {cluster}"));
}

// RBAC is not copied, whatever the configuration says.
TEST(CarriedResources, RbacAndNamespacesAreNeverCopied) {
  EXPECT_THAT(complaint("carriedResources: [{group: rbac.authorization.k8s.io, version: v1, resource: roles, kind: "
                        "Role, all: true}]"),
              HasSubstr("cannot be copied"));
  EXPECT_THAT(
      complaint("carriedResources: [{version: v1, resource: namespaces, kind: Namespace, scope: Cluster, names: "
                "['{cluster}']}]"),
      HasSubstr("cannot be copied"));
}

}  // namespace
}  // namespace hubferry::hubagent
