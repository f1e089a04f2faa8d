#include "hubferry/kube/conditions.hpp"

#include <gtest/gtest.h>
#include <boost/json/array.hpp>

#include "hubferry/async/clock.hpp"

namespace hubferry::kube {
namespace {

const async::WallTime noon = async::parse_time("2030-06-01T12:00:00Z");

Condition ready(ConditionStatus status, std::string reason) {
  return {"Ready", status, std::move(reason), "a message", 3};
}

TEST(Conditions, ANewConditionCarriesAllFields) {
  json::object status;
  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::yes, "Done"), noon));
  const auto* condition = find_condition_in_status(status, "Ready");
  ASSERT_NE(condition, nullptr);
  const json::object expected{
      {"type", "Ready"},  {"status", "True"},       {"lastTransitionTime", "2030-06-01T12:00:00Z"},
      {"reason", "Done"}, {"message", "a message"}, {"observedGeneration", 3}};
  EXPECT_EQ(*condition, expected);
}

TEST(Conditions, TheTransitionTimeMovesOnlyWithTheStatus) {
  json::object status;
  set_condition(status, ready(ConditionStatus::no, "Working"), noon);
  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::no, "StillWorking"), noon + std::chrono::hours{1}));
  const auto* condition = find_condition_in_status(status, "Ready");
  EXPECT_EQ(string_at(*condition, {"reason"}), "StillWorking");
  EXPECT_EQ(string_at(*condition, {"lastTransitionTime"}), "2030-06-01T12:00:00Z");
  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::yes, "Done"), noon + std::chrono::hours{2}));
  condition = find_condition_in_status(status, "Ready");
  EXPECT_EQ(string_at(*condition, {"lastTransitionTime"}), "2030-06-01T14:00:00Z");
}

TEST(Conditions, SettingTheSameAgainChangesNothing) {
  json::object status;
  set_condition(status, ready(ConditionStatus::yes, "Done"), noon);
  const json::object before = status;
  EXPECT_FALSE(set_condition(status, ready(ConditionStatus::yes, "Done"), noon + std::chrono::hours{1}));
  EXPECT_EQ(status, before);
}

TEST(Conditions, TheyKeepTheirOrderAndForeignFields) {
  json::object status{{"conditions", json::array{json::object{{"type", "A"}, {"status", "True"}, {"extra", 1}},
                                                 json::object{{"type", "B"}, {"status", "False"}}}}};
  set_condition(status, {"A", ConditionStatus::no, "R", "m", 0}, noon);
  set_condition(status, {"C", ConditionStatus::unknown, "R", "m", 0}, noon);
  const auto& conditions = status["conditions"].get_array();
  ASSERT_EQ(conditions.size(), 3U);
  EXPECT_EQ(conditions[0].at("type"), "A");
  EXPECT_EQ(conditions[0].at("extra"), 1);
  EXPECT_FALSE(conditions[0].get_object().contains("observedGeneration"));
  EXPECT_EQ(conditions[1].at("type"), "B");
  EXPECT_EQ(conditions[2].at("status"), "Unknown");
  EXPECT_TRUE(remove_condition(status, "B"));
  EXPECT_FALSE(remove_condition(status, "B"));
}

TEST(Conditions, GarbageIsNoCondition) {
  EXPECT_FALSE(is_condition_true(Object{}, "Ready"));
  EXPECT_FALSE(is_condition_true(Object{json::object{{"status", "broken"}}}, "Ready"));
  const json::object odd{{"status", json::object{{"conditions", json::array{1, "x", json::object{{"type", 5}}}}}}};
  EXPECT_FALSE(is_condition_true(Object{odd}, "Ready"));
  json::object status{{"conditions", "text"}};
  EXPECT_FALSE(remove_condition(status, "Ready"));
  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::yes, "Done"), noon));
  EXPECT_TRUE(is_condition_true(Object{json::object{{"status", status}}}, "Ready"));
}

}  // namespace
}  // namespace hubferry::kube
