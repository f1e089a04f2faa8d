// Merge, JSON and strategic patches, and server-side apply.
#include <boost/json/parse.hpp>

#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

TEST_P(KubeContract, AMergePatchSetsReplacesAndRemovesFields) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    json::object patch{{"data", json::object{{"new", "1"}, {"k", nullptr}}},
                       {"metadata", json::object{{"labels", json::object{{"l", "x"}}}}}};
    auto patched = co_await api().merge_patch(resources::config_maps, key("a"), patch);
    CO_ASSERT_TRUE(patched.has_value());
    EXPECT_EQ(patched->string_at({"data", "new"}), "1");
    EXPECT_EQ(patched->find({"data", "k"}), nullptr);
    EXPECT_EQ(patched->label("l"), "x");
  });
}

TEST_P(KubeContract, AMergePatchWithAnOldVersionConflicts) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    json::object patch{{"metadata", json::object{{"resourceVersion", made.resource_version()}}},
                       {"data", json::object{{"k", "1"}}}};
    auto first = co_await api().merge_patch(resources::config_maps, key("a"), patch);
    EXPECT_TRUE(first.has_value());
    patch["data"].get_object()["k"] = "2";
    auto second = co_await api().merge_patch(resources::config_maps, key("a"), patch);
    expect_error(second, ErrorKind::conflict);
  });
}

TEST_P(KubeContract, APatchWithoutEffectKeepsTheVersion) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a", "same");
    json::object patch{{"data", json::object{{"k", "same"}}}};
    auto patched = co_await api().merge_patch(resources::config_maps, key("a"), patch);
    CO_ASSERT_TRUE(patched.has_value());
    EXPECT_EQ(patched->resource_version(), made.resource_version());
  });
}

TEST_P(KubeContract, AJsonPatchDoesItsOperationsInOrder) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a", "v");
    json::array patch = json::parse(R"([
      {"op": "test", "path": "/data/k", "value": "v"},
      {"op": "add", "path": "/data/a~1b", "value": "slash"},
      {"op": "copy", "from": "/data/k", "path": "/data/copy"},
      {"op": "move", "from": "/data/k", "path": "/data/moved"},
      {"op": "replace", "path": "/data/moved", "value": "w"}
    ])")
                            .as_array();
    patch.erase(patch.begin() + 1);  // a slash is no valid key of a ConfigMap
    auto patched = co_await api().json_patch(resources::config_maps, key("a"), patch);
    CO_ASSERT_TRUE(patched.has_value());
    EXPECT_EQ(*patched->find({"data"}), json::parse(R"({"copy": "v", "moved": "w"})"));
  });
}

TEST_P(KubeContract, AJsonPatchWhoseTestFailsChangesNothing) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a", "v");
    const json::array patch = json::parse(R"([
      {"op": "replace", "path": "/data/k", "value": "w"},
      {"op": "test", "path": "/data/k", "value": "not this"}
    ])")
                                  .as_array();
    auto patched = co_await api().json_patch(resources::config_maps, key("a"), patch);
    expect_error(patched, ErrorKind::invalid);
    auto got = co_await api().get(resources::config_maps, key("a"));
    EXPECT_EQ(got->string_at({"data", "k"}), "v");
  });
}

TEST_P(KubeContract, AJsonPatchWithoutItsTargetIsInvalid) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a", "v");
    const json::array patch = json::parse(R"([{"op": "remove", "path": "/data/missing"}])").as_array();
    auto patched = co_await api().json_patch(resources::config_maps, key("a"), patch);
    expect_error(patched, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, APatchCannotBreakTheObject) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a", "v");
    json::object wrong_type{{"data", "no object"}};
    auto patched = co_await api().merge_patch(resources::config_maps, key("a"), wrong_type);
    EXPECT_EQ(patched.has_value(), world().differs(Difference::untyped_built_in_kinds));
    json::object renamed{{"metadata", json::object{{"name", "b"}}}};
    auto moved = co_await api().merge_patch(resources::config_maps, key("a"), renamed);
    expect_error(moved, ErrorKind::invalid);
  });
}

class Applying {
 public:
  Applying(Api& api, Key key) : api_(api), key_(std::move(key)) {}

  Awaitable<Result<Object>> as(std::string manager, json::object data, bool force = false) {
    Request request;
    request.verb = Verb::apply;
    request.resource = resources::config_maps;
    request.key = key_;
    request.field_manager = std::move(manager);
    request.force = force;
    request.body = json::object{{"apiVersion", "v1"},
                                {"kind", "ConfigMap"},
                                {"metadata", json::object{{"namespace", key_.ns}, {"name", key_.name}}},
                                {"data", std::move(data)}};
    return api_.call(std::move(request));
  }

 private:
  Api& api_;
  Key key_;
};

json::object data(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  json::object made;
  for (const auto& [name, value] : fields) made[name] = value;
  return made;
}

TEST_P(KubeContract, ApplyCreatesWhatIsMissing) {
  run([&]() -> Awaitable<> {
    auto applied = co_await api().apply(resources::config_maps, config_map("a", "v"));
    CO_ASSERT_TRUE(applied.has_value());
    EXPECT_FALSE(applied->uid().empty());
    EXPECT_EQ(applied->string_at({"data", "k"}), "v");
  });
}

TEST_P(KubeContract, ApplyOfTheSameKeepsTheVersion) {
  run([&]() -> Awaitable<> {
    auto first = co_await api().apply(resources::config_maps, config_map("a", "v"));
    // Managers' timestamps have whole seconds: a second later they could differ.
    co_await clock().sleep_for(1100ms);
    auto second = co_await api().apply(resources::config_maps, config_map("a", "v"));
    CO_ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->resource_version(), first->resource_version());
  });
}

TEST_P(KubeContract, ApplyRemovesTheFieldsThatItsManagerNoLongerSets) {
  run([&]() -> Awaitable<> {
    Applying applying{api(), key("a")};
    auto first = co_await applying.as("one", data({{"x", "1"}, {"y", "1"}}));
    auto other = co_await applying.as("two", data({{"z", "2"}}));
    auto second = co_await applying.as("one", data({{"x", "1"}}));
    CO_ASSERT_TRUE(first.has_value() && other.has_value() && second.has_value());
    EXPECT_EQ(second->string_at({"data", "x"}), "1");
    EXPECT_EQ(second->find({"data", "y"}), nullptr);
    EXPECT_EQ(second->string_at({"data", "z"}), "2") << "another manager's field stays";
  });
}

TEST_P(KubeContract, ApplyOfAnothersFieldConflictsUnlessForced) {
  run([&]() -> Awaitable<> {
    Applying applying{api(), key("a")};
    auto first = co_await applying.as("one", data({{"x", "1"}}));
    CO_ASSERT_TRUE(first.has_value());
    auto refused = co_await applying.as("two", data({{"x", "2"}}));
    expect_error(refused, ErrorKind::conflict);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("one"));
    auto forced = co_await applying.as("two", data({{"x", "2"}}), true);
    CO_ASSERT_TRUE(forced.has_value());
    EXPECT_EQ(forced->string_at({"data", "x"}), "2");
    auto late = co_await applying.as("one", data({{"x", "1"}}));
    expect_error(late, ErrorKind::conflict);
  });
}

TEST_P(KubeContract, TwoManagersMaySetTheSameValue) {
  run([&]() -> Awaitable<> {
    Applying applying{api(), key("a")};
    auto first = co_await applying.as("one", data({{"x", "1"}}));
    auto second = co_await applying.as("two", data({{"x", "1"}}));
    CO_ASSERT_TRUE(first.has_value() && second.has_value());
    auto left = co_await applying.as("one", data({}));
    CO_ASSERT_TRUE(left.has_value());
    EXPECT_EQ(left->string_at({"data", "x"}), "1") << "the other one still wants it";
  });
}

TEST_P(KubeContract, AnAppliedFieldThatAnUpdateChangedConflicts) {
  run([&]() -> Awaitable<> {
    auto applied = co_await api().apply(resources::config_maps, config_map("a", "applied"));
    CO_ASSERT_TRUE(applied.has_value());
    Request patch = request(Verb::patch, resources::config_maps, key("a"));
    patch.field_manager = "somebody-else";
    patch.body = json::object{{"data", json::object{{"k", "patched"}}}};
    auto patched = co_await api().call(patch);
    CO_ASSERT_TRUE(patched.has_value());
    auto again = co_await api().apply(resources::config_maps, config_map("a", "applied"));
    expect_error(again, ErrorKind::conflict);
    auto forced = co_await api().apply(resources::config_maps, config_map("a", "applied"), true);
    CO_ASSERT_TRUE(forced.has_value());
    EXPECT_EQ(forced->string_at({"data", "k"}), "applied");
  });
}

}  // namespace
}  // namespace hubferry::contract
