#include "ui/token_access.hpp"

#include <gtest/gtest.h>

#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::ui {
namespace {

namespace json = kube::json;
using namespace std::chrono_literals;

class TokenAccessTest : public testing::Test {
 protected:
  TokenAccessTest() {
    const auto& api = "global";
    json::array rules;
    rules.push_back(json::object{{"apiGroups", json::array{"global-hub.open-cluster-management.io"}},
                                 {"resources", json::array{"managedclustermigrations"}},
                                 {"verbs", json::array{"list"}}});
    json::object role{{"metadata", json::object{{"name", "viewer"}}}, {"rules", std::move(rules)}};
    json::object binding{
        {"metadata", json::object{{"name", "viewer"}}},
        {"roleRef",
         json::object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "viewer"}}},
        {"subjects",
         json::array{json::object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Group"}, {"name", "viewers"}}}}};
    EXPECT_TRUE(world_.run(world_.api(api).create(kube::resources::cluster_roles, std::move(role))));
    EXPECT_TRUE(world_.run(world_.api(api).create(kube::resources::cluster_role_bindings, std::move(binding))));
    viewer_ = "Bearer " + world_.global().add_token({"ann", {"viewers"}, {}});
    stranger_ = "Bearer " + world_.global().add_token({"bob", {}, {}});
  }

  Access check(const std::string& authorization) { return world_.run(access_.check(authorization)); }

  sim::VirtualWorld world_{{.hubs = {}}};
  TokenAccess access_{world_.api("global"), "", world_.clock(), {}};
  std::string viewer_;
  std::string stranger_;
};

TEST_F(TokenAccessTest, WhoMayListMigrationsMaySeeThePage) {
  EXPECT_EQ(check(viewer_), Access::allowed);
  EXPECT_EQ(check(stranger_), Access::forbidden);
}

TEST_F(TokenAccessTest, ATokenThatTheServerDoesNotKnowIsRefused) {
  EXPECT_EQ(check(""), Access::unauthenticated);
  EXPECT_EQ(check("Basic YTpi"), Access::unauthenticated);
  EXPECT_EQ(check("Bearer "), Access::unauthenticated);
  EXPECT_EQ(check("Bearer made-up"), Access::unauthenticated);
  EXPECT_EQ(check("Bearer " + std::string(20'000, 'x')), Access::unauthenticated);
}

TEST_F(TokenAccessTest, ARightThatWasTakenAwayEndsWithinAMinute) {
  EXPECT_EQ(check(viewer_), Access::allowed);
  EXPECT_TRUE(world_.run(world_.api("global").remove(kube::resources::cluster_role_bindings, {"", "viewer"})));
  world_.run_for(61s);
  EXPECT_EQ(check(viewer_), Access::forbidden);
}

TEST_F(TokenAccessTest, MadeUpTokensDoNotFloodTheServer) {
  int reviewed = 0;
  for (int number = 0; number < 100; ++number)
    if (check("Bearer made-up-" + std::to_string(number)) == Access::unauthenticated) ++reviewed;
  EXPECT_LE(reviewed, 20);
  world_.run_for(1s);
  EXPECT_EQ(check(viewer_), Access::allowed);
}

TEST_F(TokenAccessTest, MadeUpTokensDoNotDisplaceAUserWhoIsKnown) {
  EXPECT_EQ(check(viewer_), Access::allowed);
  for (int number = 0; number < 300; ++number) {
    EXPECT_EQ(check("Bearer made-up-" + std::to_string(number)), Access::unauthenticated);
    world_.run_for(150ms);
  }
  world_.global().faults().on({.verb = "create", .resource = "tokenreviews"}).times(20).fail(503);
  EXPECT_EQ(check(viewer_), Access::allowed) << "45 s later, without another review";
}

TEST_F(TokenAccessTest, WithoutAnAnswerNobodyIsLetInAndNothingIsRemembered) {
  world_.global().faults().on({.verb = "create", .resource = "tokenreviews"}).times(20).fail(503);
  EXPECT_EQ(check(viewer_), Access::unavailable);
}

}  // namespace
}  // namespace hubferry::ui
