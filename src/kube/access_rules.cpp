#include "hubferry/kube/access_rules.hpp"

#include <algorithm>

namespace hubferry::kube {

namespace {

bool rule_lists(const json::object& rule, std::string_view field, std::string_view wanted) {
  const auto* list = rule.if_contains(field);
  return list != nullptr && list->is_array() && std::ranges::any_of(list->get_array(), [&](const json::value& item) {
           return item.is_string() && (item.get_string() == "*" || item.get_string() == wanted);
         });
}

/// True for a rule without names, which holds for all objects.
bool rule_covers(const json::object& rule, std::string_view name) {
  const auto* names = rule.if_contains("resourceNames");
  if (names == nullptr || !names->is_array() || names->get_array().empty()) return true;
  return std::ranges::any_of(names->get_array(),
                             [&](const json::value& item) { return item.is_string() && item.get_string() == name; });
}

}  // namespace

AccessRules::AccessRules(const Object& review) {
  const auto* incomplete = review.find({"status", "incomplete"});
  const auto* rules = review.find({"status", "resourceRules"});
  if (rules == nullptr || !rules->is_array()) return;
  rules_ = rules->get_array();
  complete_ = incomplete == nullptr || *incomplete == false;
}

bool AccessRules::allow(std::string_view verb, const Resource& resource, std::string_view subresource,
                        std::string_view name) const {
  const auto plural = resource.plural + (subresource.empty() ? "" : "/" + std::string{subresource});
  const auto of_any = "*/" + std::string{subresource};
  return std::ranges::any_of(rules_, [&](const json::value& value) {
    if (!value.is_object()) return false;
    const auto& rule = value.get_object();
    return rule_lists(rule, "verbs", verb) && rule_lists(rule, "apiGroups", resource.group) &&
           (rule_lists(rule, "resources", plural) || (!subresource.empty() && rule_lists(rule, "resources", of_any))) &&
           rule_covers(rule, name);
  });
}

}  // namespace hubferry::kube
