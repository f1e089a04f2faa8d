#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

class ApplyTest : public SimTest {
 protected:
  static kube::Request apply(json::object spec, std::string manager, bool force = false) {
    kube::Request request;
    request.verb = kube::Verb::apply;
    request.resource = widgets;
    request.key = {"default", "a"};
    request.body = json::object{{"apiVersion", "example.com/v1"},
                                {"kind", "Widget"},
                                {"metadata", json::object{{"name", "a"}, {"namespace", "default"}}},
                                {"spec", std::move(spec)}};
    request.field_manager = std::move(manager);
    request.force = force;
    return request;
  }
};

TEST_F(ApplyTest, CreatesMergesAndRemovesWhatIsNoLongerApplied) {
  auto test = [&]() -> Awaitable<> {
    auto made = co_await api_.call(apply({{"size", 1}, {"code", "abc"}}, "one"));
    CO_ASSERT_TRUE(made);
    auto other = co_await api_.call(apply({{"more", json::object{{"k", "v"}}}}, "two"));
    CO_ASSERT_TRUE(other);
    EXPECT_EQ(other->string_at({"spec", "code"}), "abc");
    auto less = co_await api_.call(apply({{"size", 1}}, "one"));
    CO_ASSERT_TRUE(less);
    EXPECT_EQ(less->find({"spec", "code"}), nullptr);
    EXPECT_EQ(less->string_at({"spec", "more", "k"}), "v");
  };
  loop_.run(test());
}

TEST_F(ApplyTest, AConflictNamesTheManagerAndTheFieldAndForceOverridesIt) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.call(apply({{"size", 1}}, "one"));
    auto refused = co_await api_.call(apply({{"size", 2}}, "two"));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
    EXPECT_EQ(refused.error().message, "Apply failed with 1 conflict: conflict with \"one\": .spec.size");
    auto taken = co_await api_.call(apply({{"size", 2}}, "two", true));
    CO_ASSERT_TRUE(taken);
    auto returned = co_await api_.call(apply({{"size", 1}}, "one"));
    EXPECT_FALSE(returned);
  };
  loop_.run(test());
}

// Two managers that agree share the field: it stays until the last of them gives it up.
TEST_F(ApplyTest, ASharedFieldStaysWhenOneManagerGivesItUp) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.call(apply({{"size", 1}, {"code", "abc"}}, "one"));
    co_await api_.call(apply({{"code", "abc"}}, "two"));
    auto one_less = co_await api_.call(apply({{"size", 1}}, "one"));
    CO_ASSERT_TRUE(one_less);
    EXPECT_EQ(one_less->string_at({"spec", "code"}), "abc");
    auto both_less = co_await api_.call(apply({}, "two"));
    CO_ASSERT_TRUE(both_less);
    EXPECT_EQ(both_less->find({"spec", "code"}), nullptr);
  };
  loop_.run(test());
}

TEST_F(ApplyTest, AnUpdateOwnsWhatItChanged) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.create(widgets, widget("a", 1));
    auto refused = co_await api_.call(apply({{"size", 2}}, "two"));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().message,
              "Apply failed with 1 conflict: conflict with \"hubferry\" using example.com/v1: .spec.size");
    auto agreed = co_await api_.call(apply({{"size", 1}}, "two"));
    EXPECT_TRUE(agreed);
  };
  loop_.run(test());
}

TEST_F(ApplyTest, ListsWithKeysMergeItemByItem) {
  auto test = [&]() -> Awaitable<> {
    json::object first{{"size", 1}, {"parts", json::array{json::object{{"name", "x"}, {"count", 1}}}}};
    json::object second{{"parts", json::array{json::object{{"name", "y"}, {"count", 2}}}}};
    co_await api_.call(apply(first, "one"));
    auto both = co_await api_.call(apply(second, "two"));
    CO_ASSERT_TRUE(both);
    EXPECT_EQ(both->find({"spec", "parts"})->as_array().size(), 2U);
    auto one = co_await api_.call(apply({{"size", 1}}, "one"));
    CO_ASSERT_TRUE(one);
    EXPECT_EQ(one->find({"spec", "parts"})->as_array().size(), 1U);
  };
  loop_.run(test());
}

TEST_F(ApplyTest, TheSameApplyTwiceChangesNothing) {
  auto test = [&]() -> Awaitable<> {
    auto first = co_await api_.call(apply({{"size", 1}}, "one"));
    auto again = co_await api_.call(apply({{"size", 1}}, "one"));
    CO_ASSERT_TRUE(first && again);
    EXPECT_EQ(first->resource_version(), again->resource_version());
  };
  loop_.run(test());
}

}  // namespace
}  // namespace hubferry::sim
