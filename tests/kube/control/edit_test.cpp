#include "hubferry/kube/edit.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "kube/control/control_test.hpp"

namespace hubferry::kube {
namespace {

const Key a{"ns", "a"};

json::object config_map(std::string value) {
  return {{"metadata", json::object{{"namespace", "ns"}, {"name", "a"}}}, {"data", json::object{{"k", value}}}};
}

Mutation set_data(std::string value) {
  return [value = std::move(value)](json::object& object) {
    if (string_at(object, {"data", "k"}) == value) return false;
    auto& data = object["data"];
    if (!data.is_object()) data.emplace_object();
    data.get_object()["k"] = value;
    return true;
  };
}

class EditTest : public ControlTest {
 protected:
  [[nodiscard]] std::string_view stored() const {
    return api_.find(resources::config_maps, a)->string_at({"data", "k"});
  }
};

TEST_F(EditTest, WritesNothingWhenNothingChanges) {
  api_.put(resources::config_maps, config_map("same"));
  run([&](async::TaskScope&) -> Awaitable<> {
    auto answer = co_await edit(api_, resources::config_maps, a, set_data("same"));
    EXPECT_TRUE(answer.has_value());
    EXPECT_EQ(api_.requests(Verb::update), 0U);
  });
}

TEST_F(EditTest, ReadsAndDecidesAgainAfterAConflict) {
  api_.put(resources::config_maps, config_map("old"));
  int interruptions = 0;
  api_.before = [&](const Request& request) {
    if (request.verb == Verb::update && interruptions++ < 2)
      api_.put(resources::config_maps, config_map("other " + std::to_string(interruptions)));
  };
  run([&](async::TaskScope&) -> Awaitable<> {
    std::vector<std::string> seen;
    Mutation append = [&](json::object& object) {
      seen.emplace_back(string_at(object, {"data", "k"}));
      object["data"].get_object()["k"] = seen.back() + "!";
      return true;
    };
    auto answer = co_await edit(api_, resources::config_maps, a, append);
    EXPECT_TRUE(answer.has_value());
    EXPECT_THAT(seen, testing::ElementsAre("old", "other 1", "other 2"));
    EXPECT_EQ(stored(), "other 2!");
  });
}

// The write happened, its answer got lost: a second write would be one too many.
TEST_F(EditTest, AnAmbiguousWriteIsReadNotRepeated) {
  api_.put(resources::config_maps, config_map("old"));
  api_.fail_next(Verb::update, ErrorKind::ambiguous, true);
  run([&](async::TaskScope&) -> Awaitable<> {
    auto answer = co_await edit(api_, resources::config_maps, a, set_data("new"));
    EXPECT_TRUE(answer.has_value());
    EXPECT_EQ(stored(), "new");
    EXPECT_EQ(api_.requests(Verb::update), 1U);
    EXPECT_EQ(api_.requests(Verb::get), 2U);
  });
}

TEST_F(EditTest, GivesUpAfterItsAttempts) {
  api_.put(resources::config_maps, config_map("old"));
  for (int i = 0; i < 3; ++i) api_.fail_next(Verb::update, ErrorKind::conflict);
  run([&](async::TaskScope&) -> Awaitable<> {
    EditOptions options;
    options.attempts = 3;
    auto answer = co_await edit(api_, resources::config_maps, a, set_data("new"), options);
    CO_ASSERT_TRUE(answer.has_error());
    EXPECT_EQ(answer.error().kind, ErrorKind::conflict);
    EXPECT_EQ(api_.requests(Verb::update), 3U);
  });
}

TEST_F(EditTest, ErrorsThatAnotherReadCannotFixAreReturned) {
  run([&](async::TaskScope&) -> Awaitable<> {
    auto missing = co_await edit(api_, resources::config_maps, a, set_data("new"));
    EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
    api_.put(resources::config_maps, config_map("old"));
    api_.fail_next(Verb::update, ErrorKind::forbidden);
    auto refused = co_await edit(api_, resources::config_maps, a, set_data("new"));
    EXPECT_EQ(refused.error().kind, ErrorKind::forbidden);
    EXPECT_EQ(api_.requests(Verb::update), 1U);
  });
}

// As the webhook of ManagedClusters does where a taint was changed since.
TEST_F(EditTest, AWebhooksRefusalOfAStaleWriteIsAConflict) {
  api_.put(resources::config_maps, config_map("old"));
  run([&](async::TaskScope&) -> Awaitable<> {
    const Object known = *api_.find(resources::config_maps, a);
    api_.put(resources::config_maps, config_map("changed by another"));
    api_.fail_next(Verb::update, ErrorKind::invalid, false, 400);
    auto edited = co_await edit(api_, resources::config_maps, known, set_data("new"), EditOptions{});
    EXPECT_TRUE(edited.has_value());
    EXPECT_EQ(stored(), "new");
    api_.fail_next(Verb::update, ErrorKind::invalid, false, 400);
    auto refused = co_await edit(api_, resources::config_maps, a, set_data("newer"));
    CO_ASSERT_TRUE(refused.has_error());
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    EXPECT_EQ(stored(), "new") << "what was refused in its current version is not written again";
  });
}

TEST_F(EditTest, AnAmbiguousServerErrorIsFollowedByAReadButNotByAnotherWrite) {
  api_.put(resources::config_maps, config_map("old"));
  run([&](async::TaskScope&) -> Awaitable<> {
    api_.fail_next(Verb::update, ErrorKind::ambiguous, true, 500);
    auto happened = co_await edit(api_, resources::config_maps, a, set_data("new"));
    EXPECT_TRUE(happened.has_value());
    EXPECT_EQ(api_.requests(Verb::update), 1U);
    api_.fail_next(Verb::update, ErrorKind::ambiguous, false, 500);
    auto did_not = co_await edit(api_, resources::config_maps, a, set_data("newer"));
    CO_ASSERT_TRUE(did_not.has_error());
    EXPECT_EQ(did_not.error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(api_.requests(Verb::update), 2U);
    api_.fail_next(Verb::patch, ErrorKind::ambiguous, false, 503);
    auto patched = co_await create_or_patch(api_, resources::config_maps, a, set_data("newer"));
    EXPECT_TRUE(patched.has_error());
    EXPECT_EQ(api_.requests(Verb::patch), 1U);
  });
}

TEST_F(EditTest, AKnownStateSavesTheReadAndAStaleOneIsReadAgain) {
  api_.put(resources::config_maps, config_map("old"));
  run([&](async::TaskScope&) -> Awaitable<> {
    const Object known = *api_.find(resources::config_maps, a);
    EditOptions options;
    options.subresource = "status";
    auto first = co_await edit(api_, resources::config_maps, known, set_data("new"), options);
    EXPECT_TRUE(first.has_value());
    EXPECT_EQ(api_.requests(Verb::get), 0U);
    EXPECT_EQ(api_.log.back().subresource, "status");
    auto second = co_await edit(api_, resources::config_maps, known, set_data("newer"), options);
    EXPECT_TRUE(second.has_value());
    EXPECT_EQ(api_.requests(Verb::get), 1U);
    EXPECT_EQ(stored(), "newer");
  });
}

TEST_F(EditTest, CreateOrPatchCreatesThenPatchesThenLeavesAlone) {
  run([&](async::TaskScope&) -> Awaitable<> {
    auto created = co_await create_or_patch(api_, resources::config_maps, a, set_data("one"));
    EXPECT_EQ(created->outcome, WriteOutcome::created);
    auto changed = co_await create_or_patch(api_, resources::config_maps, a, set_data("two"));
    EXPECT_EQ(changed->outcome, WriteOutcome::changed);
    EXPECT_EQ(stored(), "two");
    const auto& patch = api_.log.back().body.get_object();
    EXPECT_EQ(patch.size(), 2U) << "only the change, and the version it was decided on";
    EXPECT_EQ(string_at(patch, {"data", "k"}), "two");
    auto same = co_await create_or_patch(api_, resources::config_maps, a, set_data("two"));
    EXPECT_EQ(same->outcome, WriteOutcome::unchanged);
    EXPECT_EQ(api_.requests(Verb::patch), 1U);
  });
}

TEST_F(EditTest, CreateOrPatchSurvivesARaceOfCreatesAndAnAmbiguousCreate) {
  bool raced = false;
  api_.before = [&](const Request& request) {
    if (request.verb != Verb::create || raced) return;
    raced = true;
    api_.put(resources::config_maps, config_map("theirs"));
  };
  run([&](async::TaskScope&) -> Awaitable<> {
    auto written = co_await create_or_patch(api_, resources::config_maps, a, set_data("ours"));
    EXPECT_EQ(written->outcome, WriteOutcome::changed);
    EXPECT_EQ(stored(), "ours");
    api_.erase(resources::config_maps, a);
    api_.fail_next(Verb::create, ErrorKind::ambiguous, true);
    auto again = co_await create_or_patch(api_, resources::config_maps, a, set_data("ours"));
    EXPECT_TRUE(again.has_value());
    EXPECT_EQ(stored(), "ours");
  });
}

TEST_F(EditTest, WithoutCreateAMissingObjectIsAnErrorAndAPresentOneIsPatched) {
  run([&](async::TaskScope&) -> Awaitable<> {
    EditOptions options;
    options.create = false;
    auto missing = co_await create_or_patch(api_, resources::config_maps, a, set_data("one"), options);
    CO_ASSERT_TRUE(!missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
    EXPECT_EQ(api_.requests(Verb::create), 0U);
    api_.put(resources::config_maps, config_map("v"));
    auto changed = co_await create_or_patch(api_, resources::config_maps, a, set_data("two"), options);
    EXPECT_EQ(changed->outcome, WriteOutcome::changed);
    EXPECT_EQ(api_.requests(Verb::patch), 1U);
  });
}

TEST_F(EditTest, FinalizersAreAddedOnceAndRemovedOnce) {
  api_.put(resources::config_maps, config_map("v"));
  run([&](async::TaskScope&) -> Awaitable<> {
    for (int i = 0; i < 2; ++i) co_await add_finalizer(api_, resources::config_maps, a, "example.io/hold");
    EXPECT_EQ(api_.requests(Verb::update), 1U);
    EXPECT_TRUE(has_finalizer(*api_.find(resources::config_maps, a), "example.io/hold"));
    for (int i = 0; i < 2; ++i) co_await remove_finalizer(api_, resources::config_maps, a, "example.io/hold");
    EXPECT_EQ(api_.requests(Verb::update), 2U);
    EXPECT_EQ(api_.find(resources::config_maps, a)->find({"metadata", "finalizers"}), nullptr);
    api_.erase(resources::config_maps, a);
    auto gone = co_await remove_finalizer(api_, resources::config_maps, a, "example.io/hold");
    EXPECT_TRUE(gone.has_value());
  });
}

TEST_F(EditTest, AnObjectBeingDeletedGetsNoFinalizer) {
  auto dying = config_map("v");
  dying["metadata"].get_object()["deletionTimestamp"] = "2030-01-01T00:00:00Z";
  api_.put(resources::config_maps, dying);
  run([&](async::TaskScope&) -> Awaitable<> {
    auto answer = co_await add_finalizer(api_, resources::config_maps, a, "example.io/hold");
    CO_ASSERT_TRUE(answer.has_value());
    EXPECT_FALSE(has_finalizer(*answer, "example.io/hold"));
    EXPECT_EQ(api_.requests(Verb::update), 0U);
  });
}

TEST(MergePatch, HoldsWhatDiffersAndNullForWhatIsGone) {
  const auto from = json::parse(R"({"a":1,"b":{"c":1,"d":2},"e":[1,2],"gone":true})").get_object();
  const auto to = json::parse(R"({"a":1,"b":{"c":1,"d":3},"e":[1],"new":{"x":1}})").get_object();
  const auto patch = merge_patch_between(from, to);
  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(json::value(*patch), json::parse(R"({"gone":null,"b":{"d":3},"e":[1],"new":{"x":1}})"));
  EXPECT_FALSE(merge_patch_between(to, to).has_value());
}

TEST(ContainsFields, ComparesArraysByElementAndObjectsByField) {
  const auto actual = json::parse(R"({"a":1,"list":[{"x":1,"defaulted":2}],"empty":[]})");
  EXPECT_TRUE(contains_fields(actual, json::parse(R"({"list":[{"x":1}]})")));
  EXPECT_TRUE(contains_fields(actual, json::parse("{}")));
  EXPECT_FALSE(contains_fields(actual, json::parse(R"({"list":[{"x":1},{"x":2}]})")));
  EXPECT_FALSE(contains_fields(actual, json::parse(R"({"list":[]})")));
  EXPECT_FALSE(contains_fields(actual, json::parse(R"({"missing":null})")));
  EXPECT_FALSE(contains_fields(actual, json::parse(R"({"a":{"b":1}})")));
}

class OwnerTest : public testing::Test {
 protected:
  static Object owner(std::string ns, std::string name, std::string uid) {
    return Object{json::object{{"metadata", json::object{{"namespace", ns}, {"name", name}, {"uid", uid}}}}};
  }
  json::object object_ = config_map("v");
};

TEST_F(OwnerTest, AnOwnerIsSetOnceAndBroughtUpToDate) {
  const auto first = owner("ns", "o", "u1");
  EXPECT_TRUE(set_owner(object_, resources::secrets, first).value());
  EXPECT_FALSE(set_owner(object_, resources::secrets, first).value());
  EXPECT_TRUE(is_owned_by(Object{object_}, "u1"));
  EXPECT_TRUE(set_owner(object_, resources::secrets, first, {false, false}).value());
  EXPECT_FALSE(is_owned_by(Object{object_}, "u2"));
}

TEST_F(OwnerTest, OnlyOneControllerOwnsAnObject) {
  EXPECT_TRUE(set_owner(object_, resources::secrets, owner("ns", "o", "u1")).value());
  const auto second = set_owner(object_, resources::secrets, owner("ns", "p", "u2"));
  ASSERT_TRUE(second.has_error());
  EXPECT_EQ(second.error().kind, ErrorKind::conflict);
  EXPECT_TRUE(set_owner(object_, resources::secrets, owner("ns", "p", "u2"), {false, true}).value());
}

// The garbage collector would delete such an object at once.
TEST_F(OwnerTest, AnOwnerInAnotherNamespaceOrWithoutUidIsRefused) {
  EXPECT_EQ(set_owner(object_, resources::secrets, owner("elsewhere", "o", "u")).error().kind, ErrorKind::invalid);
  EXPECT_EQ(set_owner(object_, resources::secrets, owner("ns", "o", "")).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(set_owner(object_, resources::namespaces, owner("", "o", "u")).value());
}

}  // namespace
}  // namespace hubferry::kube
