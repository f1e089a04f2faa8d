#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

class DeletionTest : public SimTest {
 protected:
  /// A ConfigMap that belongs to `owner`.
  static json::object owned(std::string_view name, const kube::Object& owner, bool blocks = false) {
    json::object body = config_map(name);
    body["metadata"].as_object()["ownerReferences"] = json::array{json::object{{"apiVersion", "example.com/v1"},
                                                                               {"kind", "Widget"},
                                                                               {"name", owner.name()},
                                                                               {"uid", owner.uid()},
                                                                               {"blockOwnerDeletion", blocks}}};
    return body;
  }

  const kube::Resource& config_maps_ = kube::resources::config_maps;
};

TEST_F(DeletionTest, DependentsFollowTheirOwnerInTheBackground) {
  auto test = [&]() -> Awaitable<> {
    auto owner = co_await api_.create(widgets, widget("a"));
    co_await api_.create(config_maps_, owned("c", *owner));
    auto removed = co_await api_.remove(widgets, {"default", "a"});
    EXPECT_TRUE(removed);
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(server_.count(config_maps_), 0U);
  };
  loop_.run(test());
}

TEST_F(DeletionTest, AForegroundDeletionWaitsForItsBlockingDependents) {
  auto test = [&]() -> Awaitable<> {
    auto owner = co_await api_.create(widgets, widget("a"));
    json::object held = owned("c", *owner, true);
    held["metadata"].as_object()["finalizers"] = json::array{"example.com/hold"};
    co_await api_.create(config_maps_, held);
    co_await api_.remove(widgets, {"default", "a"}, kube::Propagation::foreground);
    co_await clock_.sleep_for(1s);
    auto waiting = server_.object(widgets, {"default", "a"});
    CO_ASSERT_TRUE(waiting);
    EXPECT_TRUE(waiting->is_being_deleted());
    auto dependent = server_.object(config_maps_, {"default", "c"});
    CO_ASSERT_TRUE(dependent);
    EXPECT_TRUE(dependent->is_being_deleted());
    json::object release{{"metadata", json::object{{"finalizers", nullptr}}}};
    co_await api_.merge_patch(config_maps_, {"default", "c"}, release);
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(server_.count(widgets), 0U);
    EXPECT_EQ(server_.count(config_maps_), 0U);
  };
  loop_.run(test());
}

TEST_F(DeletionTest, OrphansLoseTheirOwnerAndStay) {
  auto test = [&]() -> Awaitable<> {
    auto owner = co_await api_.create(widgets, widget("a"));
    co_await api_.create(config_maps_, owned("c", *owner));
    co_await api_.remove(widgets, {"default", "a"}, kube::Propagation::orphan);
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(server_.count(widgets), 0U);
    auto orphan = server_.object(config_maps_, {"default", "c"});
    CO_ASSERT_TRUE(orphan);
    EXPECT_EQ(orphan->find({"metadata", "ownerReferences"}), nullptr);
  };
  loop_.run(test());
}

TEST_F(DeletionTest, ATerminatingNamespaceDeletesItsContentAndRejectsNewObjects) {
  auto test = [&]() -> Awaitable<> {
    json::object ns{{"metadata", json::object{{"name", "n"}}}};
    co_await api_.create(kube::resources::namespaces, ns);
    json::object held = widget("a", 1, "n");
    held["metadata"].as_object()["finalizers"] = json::array{"example.com/hold"};
    co_await api_.create(widgets, held);
    co_await api_.create(config_maps_, config_map("c", "n"));
    auto removed = co_await api_.remove(kube::resources::namespaces, {"", "n"});
    CO_ASSERT_TRUE(removed);
    EXPECT_EQ(removed->string_at({"status", "phase"}), "Terminating");
    co_await clock_.sleep_for(1s);
    EXPECT_EQ(server_.count(config_maps_), 0U);
    auto late = co_await api_.create(config_maps_, config_map("d", "n"));
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().kind, ErrorKind::forbidden);
    EXPECT_EQ(late.error().message,
              "configmaps \"d\" is forbidden: unable to create new content in namespace n because it is being "
              "terminated");
    json::object release{{"metadata", json::object{{"finalizers", nullptr}}}};
    co_await api_.merge_patch(widgets, {"n", "a"}, release);
    co_await clock_.sleep_for(1s);
    EXPECT_FALSE(server_.object(kube::resources::namespaces, {"", "n"}));
  };
  loop_.run(test());
}

TEST_F(DeletionTest, ACrdIsServedOnceEstablishedAndItsDeletionDeletesItsObjects) {
  auto test = [&]() -> Awaitable<> {
    const Key key{"", "widgets.example.com"};
    auto definition = server_.object(kube::resources::custom_resource_definitions, key);
    CO_ASSERT_TRUE(definition);
    EXPECT_EQ(definition->find({"status", "conditions"})->as_array().size(), 2U);
    auto served = co_await api_.serves(widgets);
    EXPECT_TRUE(served && *served);
    co_await api_.create(widgets, widget("a"));
    co_await api_.remove(kube::resources::custom_resource_definitions, key);
    co_await clock_.sleep_for(1s);
    EXPECT_FALSE(server_.object(kube::resources::custom_resource_definitions, key));
    auto unserved = co_await api_.get(widgets, {"default", "a"});
    CO_ASSERT_TRUE(!unserved);
    EXPECT_EQ(unserved.error().message, "the server could not find the requested resource");
    co_await api_.create(kube::resources::custom_resource_definitions, widget_definition());
    co_await clock_.sleep_for(1s);
    auto afresh = co_await api_.create(widgets, widget("a"));
    EXPECT_TRUE(afresh);
  };
  loop_.run(test());
}

}  // namespace
}  // namespace hubferry::sim
