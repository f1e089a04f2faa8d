// Custom resources: definition, validation, generation, status.
#include <boost/json/parse.hpp>

#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

json::object spec(std::string_view text) {
  return json::parse(text).as_object();
}

TEST_P(KubeContract, ACustomKindIsServedOnceItIsEstablished) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto made = co_await api().create(widgets, widget("a", spec(R"({"size": 1})")));
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->string_at({"kind"}), "Widget");
    auto all = co_await api().list_all(widgets, here());
    CO_ASSERT_TRUE(all.has_value());
    EXPECT_EQ(all->size(), 1U);
  });
}

TEST_P(KubeContract, TheSchemaIsEnforced) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    for (const auto* bad : {R"({})", R"({"size": "large"})", R"({"size": 0})", R"({"size": 11})", R"({"size": 1.5})",
                            R"({"size": 1, "color": "blue"})", R"({"size": 1, "code": "ABC"})"}) {
      auto refused = co_await api().create(widgets, widget("a", spec(bad)));
      if (refused.has_value()) ADD_FAILURE() << bad << " was accepted";
      expect_error(refused, ErrorKind::invalid);
    }
    auto good = co_await api().create(widgets, widget("a", spec(R"({"size": 10, "color": "red", "code": "abc"})")));
    CO_ASSERT_TRUE(good.has_value());
    json::object patch{{"spec", json::object{{"size", 11}}}};
    auto patched = co_await api().merge_patch(widgets, key("a"), patch);
    expect_error(patched, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, ErrorsOfTheSchemaNameTheField) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto refused = co_await api().create(widgets, widget("a", spec(R"({"size": 11})")));
    expect_error(refused, ErrorKind::invalid);
    EXPECT_TRUE(refused.has_error() && refused.error().message.find("spec.size") != std::string::npos)
        << refused.error();
  });
}

TEST_P(KubeContract, DefaultsAreFilledInAndUnknownFieldsPruned) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto made = co_await api().create(
        widgets, widget("a", spec(R"({"size": 1, "unknown": true, "open": {"anything": [1, {"x": null}]}})")));
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_EQ(*made->find({"spec"}),
              json::parse(R"({"size": 1, "copies": 3, "open": {"anything": [1, {"x": null}]}})"));
  });
}

TEST_P(KubeContract, TheGenerationCountsChangesOfTheSpecOnly) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto made = co_await api().create(widgets, widget("a", spec(R"({"size": 1})")));
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->generation(), 1);
    json::object label{{"metadata", json::object{{"labels", json::object{{"l", "1"}}}}}};
    auto labelled = co_await api().merge_patch(widgets, key("a"), label);
    CO_ASSERT_TRUE(labelled.has_value());
    EXPECT_EQ(labelled->generation(), 1);
    json::object status{{"status", json::object{{"done", 1}}}};
    auto reported = co_await api().merge_patch(widgets, key("a"), status, "status");
    CO_ASSERT_TRUE(reported.has_value());
    EXPECT_EQ(reported->generation(), 1);
    json::object resized{{"spec", json::object{{"size", 2}}}};
    auto changed = co_await api().merge_patch(widgets, key("a"), resized);
    CO_ASSERT_TRUE(changed.has_value());
    EXPECT_EQ(changed->generation(), 2);
    auto same = co_await api().merge_patch(widgets, key("a"), resized);
    EXPECT_EQ(same->generation(), 2);
  });
}

TEST_P(KubeContract, TheStatusIsWrittenByItsSubresourceOnly) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    json::object with_status = widget("a", spec(R"({"size": 1})"));
    with_status["status"] = json::object{{"done", 1}};
    auto made = co_await api().create(widgets, with_status);
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->find({"status"}), nullptr) << "a create drops the status";

    json::object next = made->json();
    next["status"] = json::object{{"done", 2}};
    next["spec"].get_object()["size"] = 2;
    next["metadata"].get_object()["labels"] = json::object{{"l", "1"}};
    auto status_only = co_await api().update(widgets, next, "status");
    CO_ASSERT_TRUE(status_only.has_value());
    EXPECT_EQ(*status_only->find({"status", "done"}), 2);
    EXPECT_EQ(*status_only->find({"spec", "size"}), 1);
    EXPECT_EQ(status_only->label("l"), "");

    next = status_only->json();
    next["status"] = json::object{{"done", 3}};
    next["spec"].get_object()["size"] = 3;
    auto spec_only = co_await api().update(widgets, next);
    CO_ASSERT_TRUE(spec_only.has_value());
    EXPECT_EQ(*spec_only->find({"status", "done"}), 2);
    EXPECT_EQ(*spec_only->find({"spec", "size"}), 3);

    json::object patch{{"status", json::object{{"done", 4}}}};
    auto ignored = co_await api().merge_patch(widgets, key("a"), patch);
    CO_ASSERT_TRUE(ignored.has_value());
    EXPECT_EQ(*ignored->find({"status", "done"}), 2);
    auto taken = co_await api().merge_patch(widgets, key("a"), patch, "status");
    CO_ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(*taken->find({"status", "done"}), 4);
  });
}

TEST_P(KubeContract, AStatusUpdateFromAnOldVersionConflicts) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto made = co_await api().create(widgets, widget("a", spec(R"({"size": 1})")));
    CO_ASSERT_TRUE(made.has_value());
    json::object next = made->json();
    next["status"] = json::object{{"done", 1}};
    auto first = co_await api().update(widgets, next, "status");
    CO_ASSERT_TRUE(first.has_value());
    next["status"] = json::object{{"done", 2}};
    auto second = co_await api().update(widgets, next, "status");
    expect_error(second, ErrorKind::conflict);
  });
}

TEST_P(KubeContract, AnUpdateOfACustomObjectMustNameItsVersion) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto made = co_await api().create(widgets, widget("a", spec(R"({"size": 1})")));
    CO_ASSERT_TRUE(made.has_value());
    auto refused = co_await api().update(widgets, widget("a", spec(R"({"size": 2})")));
    expect_error(refused, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, CustomObjectsTakeNoStrategicPatches) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto made = co_await api().create(widgets, widget("a", spec(R"({"size": 1})")));
    CO_ASSERT_TRUE(made.has_value());
    Request patch = request(Verb::patch, widgets, key("a"));
    patch.patch_type = PatchType::strategic;
    patch.body = json::object{{"spec", json::object{{"size", 2}}}};
    auto refused = co_await api().call(patch);
    expect_error(refused, ErrorKind::invalid);
    EXPECT_EQ(refused.error().status, 415);
  });
}

TEST_P(KubeContract, CustomObjectsCanBeWatchedAndApplied) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    auto page = co_await api().list(widgets, here(), object_decoder());
    CO_ASSERT_TRUE(page.has_value());
    WatchOptions options;
    options.ns = ns();
    options.resource_version = page->resource_version;
    auto stream = co_await open(widgets, options);
    CO_ASSERT_TRUE(stream.has_value());
    Watching events{std::move(*stream), clock()};
    auto applied = co_await api().apply(widgets, widget("a", spec(R"({"size": 1})")));
    CO_ASSERT_TRUE(applied.has_value());
    json::object status{{"status", json::object{{"done", true}}}};
    co_await api().merge_patch(widgets, key("a"), status, "status");
    auto added = co_await events.next();
    EXPECT_EQ(to_text(added), "ADDED a");
    auto modified = co_await events.next();
    EXPECT_EQ(to_text(modified), "MODIFIED a");
    EXPECT_EQ(*object_of(modified).find({"status", "done"}), true);
  });
}

TEST_P(KubeContract, ADefinitionWhoseNameIsNotItsPluralAndGroupIsInvalid) {
  run([&]() -> Awaitable<> {
    json::object bad = spec(R"({
      "metadata": {"name": "wrong.example.io"},
      "spec": {"group": "example.io", "scope": "Namespaced",
               "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
               "versions": [{"name": "v1", "served": true, "storage": true,
                             "schema": {"openAPIV3Schema": {"type": "object"}}}]}})");
    auto refused = co_await api().create(resources::custom_resource_definitions, bad);
    expect_error(refused, ErrorKind::invalid);
  });
}

}  // namespace
}  // namespace hubferry::contract
