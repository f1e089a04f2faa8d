#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

class ObjectsTest : public SimTest {};

TEST_F(ObjectsTest, ACreatedObjectGetsUidVersionTimeAndGeneration) {
  auto test = [&]() -> Awaitable<> {
    auto made = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(made);
    EXPECT_EQ(made->uid().size(), 36U);
    EXPECT_EQ(made->generation(), 1);
    EXPECT_EQ(made->string_at({"metadata", "creationTimestamp"}), "2030-01-01T00:00:00Z");
    EXPECT_EQ(made->string_at({"spec", "colour"}), "red");
    EXPECT_FALSE(made->resource_version().empty());
    auto read = co_await api_.get(widgets, {"default", "a"});
    CO_ASSERT_TRUE(read);
    EXPECT_EQ(read->json(), made->json());
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, ErrorsReadAsTheRealServersDo) {
  auto test = [&]() -> Awaitable<> {
    auto missing = co_await api_.get(widgets, {"default", "a"});
    CO_ASSERT_TRUE(!missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
    EXPECT_EQ(missing.error().message, "widgets.example.com \"a\" not found");
    co_await api_.create(widgets, widget("a"));
    auto again = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(!again);
    EXPECT_EQ(again.error().kind, ErrorKind::already_exists);
    EXPECT_EQ(again.error().message, "widgets.example.com \"a\" already exists");
    auto homeless = co_await api_.create(widgets, widget("a", 1, "nowhere"));
    CO_ASSERT_TRUE(!homeless);
    EXPECT_EQ(homeless.error().message, "namespaces \"nowhere\" not found");
    auto nameless = co_await api_.create(widgets, widget("", 1));
    CO_ASSERT_TRUE(!nameless);
    EXPECT_EQ(nameless.error().kind, ErrorKind::invalid);
    const kube::Resource gadgets{"example.com", "v1", "gadgets", "Gadget", true};
    auto unknown = co_await api_.get(gadgets, {"default", "a"});
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().message, "the server could not find the requested resource");
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, AStaleUpdateConflictsAndAnUnchangedOneChangesNothing) {
  auto test = [&]() -> Awaitable<> {
    auto made = co_await api_.create(widgets, widget("a"));
    CO_ASSERT_TRUE(made);
    json::object changed = made->json();
    changed["spec"].as_object()["size"] = 2;
    auto updated = co_await api_.update(widgets, changed);
    CO_ASSERT_TRUE(updated);
    EXPECT_EQ(updated->generation(), 2);
    auto stale = co_await api_.update(widgets, changed);
    CO_ASSERT_TRUE(!stale);
    EXPECT_EQ(stale.error().kind, ErrorKind::conflict);
    EXPECT_EQ(stale.error().message,
              "Operation cannot be fulfilled on widgets.example.com \"a\": the object has been modified; please apply "
              "your changes to the latest version and try again");
    auto same = co_await api_.update(widgets, updated->json());
    CO_ASSERT_TRUE(same);
    EXPECT_EQ(same->resource_version(), updated->resource_version());
    json::object unversioned = updated->json();
    unversioned["metadata"].as_object().erase("resourceVersion");
    auto blind = co_await api_.update(widgets, unversioned);
    CO_ASSERT_TRUE(!blind);
    EXPECT_EQ(blind.error().kind, ErrorKind::invalid);
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, StatusIsASubresourceAndMetadataDoesNotIncrementTheGeneration) {
  auto test = [&]() -> Awaitable<> {
    json::object with_status = widget("a");
    with_status["status"] = json::object{{"ready", true}};
    auto made = co_await api_.create(widgets, with_status);
    CO_ASSERT_TRUE(made);
    EXPECT_EQ(made->find({"status"}), nullptr);
    const Key key{"default", "a"};
    json::object patch{{"status", json::object{{"ready", true}}}, {"spec", json::object{{"size", 9}}}};
    auto status = co_await api_.merge_patch(widgets, key, patch, "status");
    CO_ASSERT_TRUE(status);
    EXPECT_NE(status->find({"status", "ready"}), nullptr);
    EXPECT_EQ(status->find({"spec", "size"})->as_int64(), 1);
    EXPECT_EQ(status->generation(), 1);
    json::object label_patch{{"metadata", json::object{{"labels", json::object{{"x", "y"}}}}}};
    auto labelled = co_await api_.merge_patch(widgets, key, label_patch);
    CO_ASSERT_TRUE(labelled);
    EXPECT_EQ(labelled->generation(), 1);
    json::object drop{{"status", nullptr}, {"spec", json::object{{"size", 3}}}};
    auto spec = co_await api_.merge_patch(widgets, key, drop);
    CO_ASSERT_TRUE(spec);
    EXPECT_NE(spec->find({"status", "ready"}), nullptr);
    EXPECT_EQ(spec->generation(), 2);
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, GenerateNameMakesDistinctNames) {
  auto test = [&]() -> Awaitable<> {
    json::object body{{"metadata", json::object{{"generateName", "w-"}, {"namespace", "default"}}},
                      {"spec", json::object{{"size", 1}}}};
    auto first = co_await api_.create(widgets, body);
    auto second = co_await api_.create(widgets, body);
    CO_ASSERT_TRUE(first && second);
    EXPECT_TRUE(first->name().starts_with("w-"));
    EXPECT_EQ(first->name().size(), 7U);
    EXPECT_NE(first->name(), second->name());
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, AFinalizerHoldsADeletedObjectUntilItIsRemoved) {
  auto test = [&]() -> Awaitable<> {
    json::object body = widget("a");
    body["metadata"].as_object()["finalizers"] = json::array{"example.com/hold"};
    co_await api_.create(widgets, body);
    const Key key{"default", "a"};
    auto removed = co_await api_.remove(widgets, key);
    CO_ASSERT_TRUE(removed);
    EXPECT_TRUE(removed->is_being_deleted());
    EXPECT_EQ(removed->generation(), 2);
    json::object more{{"metadata", json::object{{"finalizers", json::array{"example.com/hold", "example.com/new"}}}}};
    auto refused = co_await api_.merge_patch(widgets, key, more);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    json::object release{{"metadata", json::object{{"finalizers", nullptr}}}};
    auto released = co_await api_.merge_patch(widgets, key, release);
    EXPECT_TRUE(released);
    auto gone = co_await api_.get(widgets, key);
    EXPECT_FALSE(gone);
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, DeletePreconditionsProtectTheWrongObject) {
  auto test = [&]() -> Awaitable<> {
    auto made = co_await api_.create(widgets, widget("a"));
    kube::Request request;
    request.verb = kube::Verb::remove;
    request.resource = widgets;
    request.key = {"default", "a"};
    request.precondition_uid = "another";
    auto refused = co_await api_.call(request);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
    request.precondition_uid = made->uid();
    auto removed = co_await api_.call(request);
    CO_ASSERT_TRUE(removed);
    EXPECT_EQ(removed->string_at({"status"}), "Success");
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, ADryRunAnswersAndChangesNothing) {
  auto test = [&]() -> Awaitable<> {
    const auto before = server_.resource_version();
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = widgets;
    request.key = {"default", ""};
    request.body = widget("a");
    request.dry_run = true;
    auto made = co_await api_.call(request);
    CO_ASSERT_TRUE(made);
    EXPECT_EQ(made->string_at({"spec", "colour"}), "red");
    EXPECT_EQ(server_.resource_version(), before);
    EXPECT_EQ(server_.count(widgets), 0U);
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, JsonPatchTestsBeforeItChanges) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.create(widgets, widget("a"));
    const Key key{"default", "a"};
    json::array good{json::object{{"op", "test"}, {"path", "/spec/size"}, {"value", 1}},
                     json::object{{"op", "replace"}, {"path", "/spec/size"}, {"value", 5}},
                     json::object{{"op", "add"}, {"path", "/spec/tags"}, {"value", json::array{"x"}}},
                     json::object{{"op", "add"}, {"path", "/spec/tags/-"}, {"value", "y"}}};
    auto patched = co_await api_.json_patch(widgets, key, good);
    CO_ASSERT_TRUE(patched);
    EXPECT_EQ(patched->find({"spec", "tags"})->as_array().size(), 2U);
    auto refused = co_await api_.json_patch(widgets, key, good);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, TheSchemaChecksPrunesAndKeepsWhatItShould) {
  auto test = [&]() -> Awaitable<> {
    json::object body = widget("a", 500);
    auto& spec = body["spec"].as_object();
    spec["colour"] = "blue";
    spec["code"] = "A1";
    spec["tags"] = json::array{};
    auto refused = co_await api_.create(widgets, body);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().status, 422);
    const auto& message = refused.error().message;
    EXPECT_NE(message.find("spec.size in body should be less than or equal to 100"), std::string::npos) << message;
    EXPECT_NE(message.find("Unsupported value: \"blue\": supported values: \"red\", \"green\""), std::string::npos);
    EXPECT_NE(message.find("spec.code in body should match '^[a-z]+$'"), std::string::npos);
    EXPECT_NE(message.find("spec.tags in body should have at least 1 items"), std::string::npos);
    json::object typed = widget("a");
    typed["spec"].as_object()["size"] = "big";
    auto wrong_type = co_await api_.create(widgets, typed);
    CO_ASSERT_TRUE(!wrong_type);
    EXPECT_NE(wrong_type.error().message.find("must be of type integer: \"string\""), std::string::npos);
    json::object empty{{"metadata", json::object{{"name", "a"}, {"namespace", "default"}}}, {"spec", json::object{}}};
    auto incomplete = co_await api_.create(widgets, empty);
    CO_ASSERT_TRUE(!incomplete);
    EXPECT_EQ(incomplete.error().message, "Widget.example.com \"a\" is invalid: spec.size: Required value");
    json::object loose = widget("a");
    loose["spec"].as_object()["unknown"] = 1;
    loose["spec"].as_object()["free"] = json::object{{"any", json::object{{"thing", 1}}}};
    auto made = co_await api_.create(widgets, loose);
    CO_ASSERT_TRUE(made);
    EXPECT_EQ(made->find({"spec", "unknown"}), nullptr);
    EXPECT_NE(made->find({"spec", "free", "any", "thing"}), nullptr);
  };
  loop_.run(test());
}

TEST_F(ObjectsTest, TheSchemaEnforcesOneOfAndAnyOf) {
  auto test = [&]() -> Awaitable<> {
    auto definition =
        (co_await api_.get(kube::resources::custom_resource_definitions, {"", "widgets.example.com"}))->json();
    auto& schema = definition.at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema").at("properties");
    schema.at("spec").as_object()["oneOf"] = json::parse(R"([{"required": ["code"]}, {"required": ["tags"]}])");
    schema.at("spec").as_object()["anyOf"] = json::parse(R"([{"required": ["more"]}, {"required": ["free"]}])");
    CO_ASSERT_TRUE(co_await api_.update(kube::resources::custom_resource_definitions, definition));
    const auto create = [&](std::string name, const char* fields) -> Awaitable<std::string> {
      json::object body = widget(name);
      const auto added = json::parse(fields);
      for (const auto& [field, value] : added.as_object()) body["spec"].as_object()[field] = value;
      const auto created = co_await api_.create(widgets, body);
      co_return created ? "created" : created.error().message;
    };
    const auto neither = co_await create("a", R"({"more": {}})");
    EXPECT_NE(neither.find("must validate one and only one schema (oneOf). Found none valid"), std::string::npos)
        << neither;
    const auto both = co_await create("a", R"({"code": "ab", "tags": ["x"], "more": {}})");
    EXPECT_NE(both.find("must validate one and only one schema (oneOf). Found 2 valid"), std::string::npos) << both;
    const auto none_of_any = co_await create("a", R"({"code": "ab"})");
    EXPECT_NE(none_of_any.find("must validate at least one schema (anyOf)"), std::string::npos) << none_of_any;
    EXPECT_EQ(co_await create("a", R"({"code": "ab", "more": {}})"), "created");
    EXPECT_EQ(co_await create("b", R"({"tags": ["x"], "more": {}, "free": {}})"), "created");
  };
  loop_.run(test());
}

// A caller that is resumed in the same turn would never meet the races that real latency causes.
TEST_F(ObjectsTest, NoCallCompletesInTheTurnInWhichItWasMade) {
  int turns = 0;
  bool done = false;
  auto test = [&]() -> Awaitable<> {
    co_await api_.create(widgets, widget("a"));
    done = true;
  };
  auto count = [&]() -> Awaitable<> {
    while (!done) {
      ++turns;
      co_await async::asio::post(async::asio::deferred);
    }
  };
  auto both = [&]() -> Awaitable<> {
    async::TaskScope scope{co_await async::asio::this_coro::executor};
    scope.spawn(test());
    scope.spawn(count());
    co_await scope.join();
  };
  loop_.run(both());
  EXPECT_GE(turns, 2);
}

}  // namespace
}  // namespace hubferry::sim
