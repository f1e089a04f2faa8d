// Deletion: finalizers, preconditions, propagation.
#include "hubferry/kube/edit.hpp"
#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

constexpr auto hold = "example.io/hold";

TEST_P(KubeContract, ADeletedObjectIsGone) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    auto removed = co_await api().remove(resources::config_maps, key("a"));
    EXPECT_TRUE(removed.has_value());
    auto got = co_await api().get(resources::config_maps, key("a"));
    expect_error(got, ErrorKind::not_found);
  });
}

// Its URL would be that of the collection: all objects of the namespace would go.
TEST_P(KubeContract, ADeletionWithoutANameIsRefused) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    for (const char* name : {"", ".", ".."}) {
      auto removed = co_await api().remove(resources::config_maps, key(name));
      expect_error(removed, ErrorKind::invalid);
      auto read = co_await api().get(resources::config_maps, key(name));
      expect_error(read, ErrorKind::invalid);
    }
    auto kept = co_await api().get(resources::config_maps, key("a"));
    EXPECT_TRUE(kept.has_value());
  });
}

TEST_P(KubeContract, ANameCanBeUsedAgainWithANewUid) {
  run([&]() -> Awaitable<> {
    auto first = co_await make_config_map("a");
    co_await api().remove(resources::config_maps, key("a"));
    auto second = co_await make_config_map("a");
    EXPECT_NE(first.uid(), second.uid());
  });
}

TEST_P(KubeContract, AFinalizerHoldsADeletedObjectUntilItIsRemoved) {
  run([&]() -> Awaitable<> {
    json::object held = config_map("a");
    put_finalizer(held, hold);
    auto made = co_await api().create(resources::config_maps, held);
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_FALSE(made->is_being_deleted());
    auto removed = co_await api().remove(resources::config_maps, key("a"));
    EXPECT_TRUE(removed.has_value());
    auto dying = co_await api().get(resources::config_maps, key("a"));
    CO_ASSERT_TRUE(dying.has_value());
    EXPECT_TRUE(dying->is_being_deleted());
    EXPECT_NE(dying->resource_version(), made->resource_version());
    auto again = co_await api().remove(resources::config_maps, key("a"));
    EXPECT_TRUE(again.has_value()) << "deleting twice is no error";
    auto released = co_await remove_finalizer(api(), resources::config_maps, key("a"), hold);
    EXPECT_TRUE(released.has_value());
    auto got = co_await api().get(resources::config_maps, key("a"));
    expect_error(got, ErrorKind::not_found);
  });
}

TEST_P(KubeContract, AnObjectBeingDeletedTakesNoNewFinalizer) {
  run([&]() -> Awaitable<> {
    json::object held = config_map("a");
    put_finalizer(held, hold);
    auto made = co_await api().create(resources::config_maps, held);
    co_await api().remove(resources::config_maps, key("a"));
    auto dying = co_await api().get(resources::config_maps, key("a"));
    CO_ASSERT_TRUE(dying.has_value());
    json::object more = dying->json();
    put_finalizer(more, "example.io/second");
    auto refused = co_await api().update(resources::config_maps, more);
    expect_error(refused, ErrorKind::invalid);
    auto left_alone = co_await add_finalizer(api(), resources::config_maps, key("a"), "example.io/second");
    EXPECT_TRUE(left_alone.has_value());
    auto released = co_await remove_finalizer(api(), resources::config_maps, key("a"), hold);
    EXPECT_TRUE(released.has_value());
  });
}

TEST_P(KubeContract, TheDeletionTimeCannotBeSetOrTakenBack) {
  run([&]() -> Awaitable<> {
    json::object held = config_map("a");
    held["metadata"].get_object()["deletionTimestamp"] = "2020-01-01T00:00:00Z";
    put_finalizer(held, hold);
    auto made = co_await api().create(resources::config_maps, held);
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_FALSE(made->is_being_deleted());
    co_await api().remove(resources::config_maps, key("a"));
    json::object patch{{"metadata", json::object{{"deletionTimestamp", nullptr}}}};
    auto patched = co_await api().merge_patch(resources::config_maps, key("a"), patch);
    if (patched) EXPECT_TRUE(patched->is_being_deleted());
    co_await remove_finalizer(api(), resources::config_maps, key("a"), hold);
  });
}

TEST_P(KubeContract, ADeletionMayBeBoundToAUid) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    Request removal = request(Verb::remove, resources::config_maps, key("a"));
    removal.precondition_uid = "00000000-0000-4000-8000-000000000000";
    auto refused = co_await api().call(removal);
    expect_error(refused, ErrorKind::conflict);
    removal.precondition_uid = made.uid();
    auto removed = co_await api().call(removal);
    EXPECT_TRUE(removed.has_value());
  });
}

TEST_P(KubeContract, ADeletionMayBeBoundToAVersion) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    auto changed = co_await api().update(resources::config_maps, config_map("a", "changed"));
    CO_ASSERT_TRUE(changed.has_value());
    Request removal = request(Verb::remove, resources::config_maps, key("a"));
    removal.precondition_resource_version = made.resource_version();
    auto refused = co_await api().call(removal);
    expect_error(refused, ErrorKind::conflict);
    removal.precondition_resource_version = changed->resource_version();
    auto removed = co_await api().call(removal);
    EXPECT_TRUE(removed.has_value());
  });
}

TEST_P(KubeContract, ForegroundAndOrphanDeletionLeaveWorkForTheGarbageCollector) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    co_await make_config_map("b");
    auto foreground = co_await api().remove(resources::config_maps, key("a"), Propagation::foreground);
    CO_ASSERT_TRUE(foreground.has_value());
    EXPECT_TRUE(has_finalizer(*foreground, "foregroundDeletion"));
    EXPECT_TRUE(foreground->is_being_deleted());
    auto orphan = co_await api().remove(resources::config_maps, key("b"), Propagation::orphan);
    CO_ASSERT_TRUE(orphan.has_value());
    EXPECT_EQ(has_finalizer(*orphan, "orphan"), !world().differs(Difference::orphans_at_once));
  });
}

// Another namespace's controller must not race with the one that empties it.
TEST_P(KubeContract, ANamespaceBeingDeletedTakesNoNewObjects) {
  run([&]() -> Awaitable<> {
    const Key name{{}, unique_name("doomed-")};
    json::object space{{"metadata", json::object{{"name", name.name}}}};
    auto made = co_await api().create(resources::namespaces, space);
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->string_at({"status", "phase"}), "Active");
    json::object held = config_map("held");
    held["metadata"].get_object()["namespace"] = name.name;
    put_finalizer(held, hold);
    auto inside = co_await api().create(resources::config_maps, held);
    CO_ASSERT_TRUE(inside.has_value());
    co_await api().remove(resources::namespaces, name);
    auto dying = co_await api().get(resources::namespaces, name);
    CO_ASSERT_TRUE(dying.has_value());
    EXPECT_TRUE(dying->is_being_deleted());
    EXPECT_EQ(dying->string_at({"status", "phase"}), "Terminating");
    json::object late = config_map("late");
    late["metadata"].get_object()["namespace"] = name.name;
    auto refused = co_await api().create(resources::config_maps, late);
    expect_error(refused, ErrorKind::forbidden);
    EXPECT_TRUE(refused.has_error() && refused.error().message.find("being terminated") != std::string::npos);
    const Key held_key{name.name, "held"};
    co_await remove_finalizer(api(), resources::config_maps, held_key, hold);
  });
}

}  // namespace
}  // namespace hubferry::contract
