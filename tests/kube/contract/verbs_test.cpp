// Reading and writing single objects.
#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

using testing::SizeIs;

TEST_P(KubeContract, GetReturnsWhatWasCreated) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a", "hello");
    auto got = co_await api().get(resources::config_maps, key("a"));
    CO_ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->json(), made.json());
    EXPECT_EQ(got->string_at({"data", "k"}), "hello");
  });
}

TEST_P(KubeContract, AnswersNameTheirKind) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    EXPECT_EQ(made.string_at({"kind"}), "ConfigMap");
    EXPECT_EQ(made.string_at({"apiVersion"}), "v1");
  });
}

TEST_P(KubeContract, TheServerFillsInUidVersionAndTime) {
  run([&]() -> Awaitable<> {
    auto a = co_await make_config_map("a");
    auto b = co_await make_config_map("b");
    EXPECT_THAT(std::string{a.uid()}, SizeIs(36));
    EXPECT_NE(a.uid(), b.uid());
    EXPECT_FALSE(a.resource_version().empty());
    EXPECT_NE(a.resource_version(), b.resource_version());
    const auto time = a.string_at({"metadata", "creationTimestamp"});
    EXPECT_THAT(std::string{time}, SizeIs(20)) << "whole seconds, UTC";
    EXPECT_NO_THROW(static_cast<void>(async::parse_time(time)));
  });
}

TEST_P(KubeContract, GenerateNameGivesEachObjectANameOfItsOwn) {
  run([&]() -> Awaitable<> {
    json::object unnamed = config_map("");
    unnamed["metadata"].get_object().erase("name");
    unnamed["metadata"].get_object()["generateName"] = "gen-";
    auto first = co_await api().create(resources::config_maps, unnamed);
    auto second = co_await api().create(resources::config_maps, unnamed);
    CO_ASSERT_TRUE(first.has_value() && second.has_value());
    EXPECT_TRUE(first->name().starts_with("gen-"));
    EXPECT_EQ(first->name().size(), 9U);
    EXPECT_NE(first->name(), second->name());
  });
}

TEST_P(KubeContract, ASecondCreateMeetsTheFirst) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    auto again = co_await api().create(resources::config_maps, config_map("a"));
    expect_error(again, ErrorKind::already_exists);
    EXPECT_EQ(again.error().status, 409);
    EXPECT_EQ(again.error().reason, "AlreadyExists");
    EXPECT_THAT(again.error().message, testing::HasSubstr("\"a\" already exists"));
  });
}

TEST_P(KubeContract, WhatDoesNotExistIsNotFound) {
  run([&]() -> Awaitable<> {
    auto got = co_await api().get(resources::config_maps, key("missing"));
    expect_error(got, ErrorKind::not_found);
    EXPECT_EQ(got.error().status, 404);
    EXPECT_THAT(got.error().message, testing::HasSubstr("\"missing\" not found"));
    auto updated = co_await api().update(resources::config_maps, config_map("missing"));
    expect_error(updated, ErrorKind::not_found);
    auto patched = co_await api().merge_patch(resources::config_maps, key("missing"), json::object{});
    expect_error(patched, ErrorKind::not_found);
    auto removed = co_await api().remove(resources::config_maps, key("missing"));
    expect_error(removed, ErrorKind::not_found);
  });
}

TEST_P(KubeContract, UpdateReplacesTheWholeObject) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    json::object next = made.json();
    next["data"] = json::object{{"other", "x"}};
    next["metadata"].get_object()["labels"] = json::object{{"l", "1"}};
    auto updated = co_await api().update(resources::config_maps, next);
    CO_ASSERT_TRUE(updated.has_value());
    EXPECT_NE(updated->resource_version(), made.resource_version());
    EXPECT_EQ(updated->find({"data", "k"}), nullptr);
    EXPECT_EQ(updated->string_at({"data", "other"}), "x");
    EXPECT_EQ(updated->label("l"), "1");
    EXPECT_EQ(updated->uid(), made.uid());
  });
}

TEST_P(KubeContract, AnUpdateFromAnOldVersionConflicts) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    json::object next = made.json();
    next["data"].get_object()["k"] = "first";
    auto first = co_await api().update(resources::config_maps, next);
    CO_ASSERT_TRUE(first.has_value());
    next["data"].get_object()["k"] = "second";
    auto second = co_await api().update(resources::config_maps, next);
    expect_error(second, ErrorKind::conflict);
    EXPECT_EQ(second.error().reason, "Conflict");
    auto got = co_await api().get(resources::config_maps, key("a"));
    EXPECT_EQ(got->string_at({"data", "k"}), "first");
  });
}

TEST_P(KubeContract, AnUpdateWithoutAVersionIsUnconditional) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    auto updated = co_await api().update(resources::config_maps, config_map("a", "forced"));
    CO_ASSERT_TRUE(updated.has_value());
    EXPECT_EQ(updated->string_at({"data", "k"}), "forced");
  });
}

TEST_P(KubeContract, AnUpdateThatChangesNothingKeepsTheVersion) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    auto updated = co_await api().update(resources::config_maps, made.json());
    CO_ASSERT_TRUE(updated.has_value());
    EXPECT_EQ(updated->resource_version(), made.resource_version());
  });
}

// The object of that name was deleted and made anew: this update means the old one.
TEST_P(KubeContract, AnUpdateForAnotherUidConflicts) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    json::object next = config_map("a", "x");
    next["metadata"].get_object()["uid"] = "00000000-0000-4000-8000-000000000000";
    auto updated = co_await api().update(resources::config_maps, next);
    expect_error(updated, ErrorKind::conflict);
  });
}

TEST_P(KubeContract, ANameInTheBodyMustBeTheOneInThePath) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    Request odd = request(Verb::update, resources::config_maps, key("a"));
    odd.body = config_map("b");
    odd.body.get_object()["apiVersion"] = "v1";
    odd.body.get_object()["kind"] = "ConfigMap";
    auto updated = co_await api().call(std::move(odd));
    expect_error(updated, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, ANamespaceInTheBodyMustBeTheOneInThePath) {
  run([&]() -> Awaitable<> {
    Request odd = request(Verb::create, resources::config_maps, Key{"default", {}});
    odd.body = config_map("a");
    odd.body.get_object()["apiVersion"] = "v1";
    odd.body.get_object()["kind"] = "ConfigMap";
    auto made = co_await api().call(std::move(odd));
    expect_error(made, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, NamesAndLabelsAreValidated) {
  run([&]() -> Awaitable<> {
    auto upper = co_await api().create(resources::config_maps, config_map("Upper_Case"));
    expect_error(upper, ErrorKind::invalid);
    EXPECT_EQ(upper.error().status, 422);
    auto label = co_await api().create(resources::config_maps, labelled("a", "l", "not a label!"));
    expect_error(label, ErrorKind::invalid);
    auto umlaut = co_await api().create(resources::config_maps, labelled("a", "l", "ü"));
    expect_error(umlaut, ErrorKind::invalid);
    json::object nameless = config_map("");
    nameless["metadata"].get_object().erase("name");
    auto unnamed = co_await api().create(resources::config_maps, nameless);
    expect_error(unnamed, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, ACreateInAMissingNamespaceIsNotFound) {
  run([&]() -> Awaitable<> {
    json::object lost = config_map("a");
    lost["metadata"].get_object()["namespace"] = unique_name("nowhere-");
    auto made = co_await api().create(resources::config_maps, lost);
    expect_error(made, ErrorKind::not_found);
  });
}

TEST_P(KubeContract, UnicodeComesBackByteForByte) {
  run([&]() -> Awaitable<> {
    const std::string text = "Grüße 船 🚢 \"quoted\" \\ \n\t \u0001 \u2028 \u00a0 e\u0301";
    json::object object = config_map("a", text);
    object["metadata"].get_object()["annotations"] = json::object{{"note", text}};
    auto made = co_await api().create(resources::config_maps, object);
    CO_ASSERT_TRUE(made.has_value());
    auto got = co_await api().get(resources::config_maps, key("a"));
    EXPECT_EQ(got->string_at({"data", "k"}), text);
    EXPECT_EQ(got->annotation("note"), text);
  });
}

TEST_P(KubeContract, AnObjectOfOneMebibyteFits) {
  run([&]() -> Awaitable<> {
    std::string big;
    while (big.size() < 1'040'000) big += "0123456789abcdefghijklmnopqrstuvwxyz\n";
    auto made = co_await make_config_map("a", big);
    auto got = co_await api().get(resources::config_maps, key("a"));
    EXPECT_EQ(got->string_at({"data", "k"}), big);
    auto listed = co_await api().list(resources::config_maps, here(), object_decoder());
    EXPECT_TRUE(listed.has_value());
  });
}

TEST_P(KubeContract, DryRunsValidateAnswerAndChangeNothing) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    Request create = request(Verb::create, resources::config_maps, Key{ns(), {}});
    create.dry_run = true;
    create.body = config_map("b");
    create.body.get_object()["apiVersion"] = "v1";
    create.body.get_object()["kind"] = "ConfigMap";
    Request refused = create;
    refused.body.get_object()["metadata"].get_object()["name"] = "a";
    auto created = co_await api().call(create);
    CO_ASSERT_TRUE(created.has_value());
    EXPECT_FALSE(created->uid().empty());
    auto clash = co_await api().call(refused);
    expect_error(clash, ErrorKind::already_exists);
    Request patch = request(Verb::patch, resources::config_maps, key("a"));
    patch.dry_run = true;
    patch.body = json::object{{"data", json::object{{"k", "changed"}}}};
    auto patched = co_await api().call(patch);
    CO_ASSERT_TRUE(patched.has_value());
    EXPECT_EQ(patched->string_at({"data", "k"}), "changed");
    Request removal = request(Verb::remove, resources::config_maps, key("a"));
    removal.dry_run = true;
    auto removed = co_await api().call(removal);
    EXPECT_TRUE(removed.has_value());
    auto still = co_await api().get(resources::config_maps, key("a"));
    CO_ASSERT_TRUE(still.has_value());
    EXPECT_EQ(still->resource_version(), made.resource_version());
    auto never_made = co_await api().get(resources::config_maps, key("b"));
    expect_error(never_made, ErrorKind::not_found);
  });
}

// Volumes cannot grow in place: an operator that tries is refused.
TEST_P(KubeContract, OfAStatefulSetOnlySomeFieldsCanBeChanged) {
  run([&]() -> Awaitable<> {
    const Resource stateful_sets{"apps", "v1", "statefulsets", "StatefulSet", true};
    const auto set = json::parse(R"({"metadata": {"name": "db"}, "spec": {
      "replicas": 0, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
      "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}},
      "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})");
    auto named = set.as_object();
    named["metadata"].as_object()["namespace"] = key("db").ns;
    auto made = co_await api().create(stateful_sets, named);
    CO_ASSERT_TRUE(made.has_value());
    auto scaled =
        co_await api().merge_patch(stateful_sets, key("db"), json::parse(R"({"spec": {"replicas": 1}})").as_object());
    EXPECT_TRUE(scaled);
    auto grown = scaled->json();
    auto& claim = grown["spec"].as_object()["volumeClaimTemplates"].as_array().at(0).as_object();
    claim["spec"].as_object()["resources"].as_object()["requests"].as_object()["storage"] = "2Gi";
    auto refused = co_await api().update(stateful_sets, grown);
    expect_error(refused, ErrorKind::invalid);
    EXPECT_EQ(refused.error().status, 422);
  });
}

}  // namespace
}  // namespace hubferry::contract
