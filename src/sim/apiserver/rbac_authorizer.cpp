#include "sim/apiserver/rbac_authorizer.hpp"

#include <algorithm>

namespace hubferry::sim {

namespace json = kube::json;

namespace {

bool lists(const json::object& rule, std::string_view field, std::string_view wanted) {
  const auto* list = rule.if_contains(field);
  return list != nullptr && list->is_array() && std::ranges::any_of(list->get_array(), [&](const json::value& item) {
           return item.is_string() && (item.get_string() == "*" || item.get_string() == wanted);
         });
}

bool resource_fits(const json::object& rule, const RbacAuthorizer::Question& question) {
  if (question.subresource.empty()) return lists(rule, "resources", question.resource);
  const std::string full = std::string{question.resource} + "/" + std::string{question.subresource};
  const std::string any = "*/" + std::string{question.subresource};
  return lists(rule, "resources", full) || lists(rule, "resources", any);
}

bool rule_allows(const json::object& rule, const RbacAuthorizer::Question& question) {
  if (!lists(rule, "verbs", question.verb) || !lists(rule, "apiGroups", question.group) ||
      !resource_fits(rule, question))
    return false;
  const auto* names = rule.if_contains("resourceNames");
  if (names == nullptr || !names->is_array() || names->get_array().empty()) return true;
  return std::ranges::any_of(names->get_array(), [&](const json::value& item) {
    return item.is_string() && !question.name.empty() && item.get_string() == question.name;
  });
}

std::string subject_key(const json::object& subject) {
  const auto kind = kube::string_at(subject, {"kind"});
  const std::string name{kube::string_at(subject, {"name"})};
  if (kind == "ServiceAccount")
    return "User/system:serviceaccount:" + std::string{kube::string_at(subject, {"namespace"})} + ":" + name;
  return std::string{kind} + "/" + name;
}

bool is_master(const User& user) {
  return std::ranges::find(user.groups, "system:masters") != user.groups.end();
}

}  // namespace

const json::array* RbacAuthorizer::rules_of(const Binding& binding) const {
  const auto found = bindings_.find(binding);
  if (found == bindings_.end()) return nullptr;
  const bool cluster_role = found->second.string_at({"roleRef", "kind"}) == "ClusterRole";
  const auto role = roles_.find(
      {cluster_role ? std::string{} : binding.ns, std::string{found->second.string_at({"roleRef", "name"})}});
  if (role == roles_.end()) return nullptr;
  const auto* rules = role->second.find({"rules"});
  return rules != nullptr && rules->is_array() ? &rules->get_array() : nullptr;
}

bool RbacAuthorizer::binding_allows(const Binding& binding, const Question& question) const {
  if (!binding.ns.empty() && binding.ns != question.ns) return false;
  const auto* rules = rules_of(binding);
  return rules != nullptr && std::ranges::any_of(*rules, [&](const json::value& rule) {
           return rule.is_object() && rule_allows(rule.get_object(), question);
         });
}

template <typename Visit>
bool RbacAuthorizer::any_binding(const User& user, Visit visit) const {
  const auto of_subject = [&](const std::string& subject) {
    const auto found = by_subject_.find(subject);
    return found != by_subject_.end() && std::ranges::any_of(found->second, visit);
  };
  return of_subject("User/" + user.name) || of_subject("Group/system:authenticated") ||
         std::ranges::any_of(user.groups, [&](const std::string& group) { return of_subject("Group/" + group); });
}

bool RbacAuthorizer::allows(const User& user, const Question& question) const {
  if (is_master(user)) return true;
  if (question.verb == "create" &&
      (question.resource == "selfsubjectaccessreviews" || question.resource == "selfsubjectrulesreviews" ||
       question.resource == "selfsubjectreviews"))
    return true;
  return any_binding(user, [&](const Binding& binding) { return binding_allows(binding, question); });
}

json::array RbacAuthorizer::rules_for(const User& user, std::string_view ns) const {
  json::array all;
  const json::array any{"*"};
  if (is_master(user)) all.push_back(json::object{{"verbs", any}, {"apiGroups", any}, {"resources", any}});
  const auto collect = [&](const Binding& binding) {
    const auto* rules = binding.ns.empty() || binding.ns == ns ? rules_of(binding) : nullptr;
    if (rules != nullptr)
      for (const auto& rule : *rules)
        if (rule.is_object() && rule.get_object().contains("resources")) all.push_back(rule);
    return false;
  };
  static_cast<void>(any_binding(user, collect));
  return all;
}

bool RbacAuthorizer::allows_path(const User& user, std::string_view verb, std::string_view) const {
  return is_master(user) || verb == "get";
}

void RbacAuthorizer::index(const kube::Object& binding, bool add) {
  const auto* subjects = binding.find({"subjects"});
  if (subjects == nullptr || !subjects->is_array()) return;
  const Binding key{std::string{binding.ns()}, std::string{binding.name()}};
  for (const auto& subject : subjects->get_array()) {
    if (!subject.is_object()) continue;
    const auto name = subject_key(subject.get_object());
    if (add) {
      by_subject_[name].insert(key);
    } else if (const auto found = by_subject_.find(name); found != by_subject_.end()) {
      found->second.erase(key);
      if (found->second.empty()) by_subject_.erase(found);
    }
  }
}

void RbacAuthorizer::put(const kube::Resource& resource, const kube::Object& object) {
  const Binding key{std::string{object.ns()}, std::string{object.name()}};
  if (resource.kind.ends_with("Role")) {
    roles_.insert_or_assign(key, object);
    return;
  }
  if (const auto found = bindings_.find(key); found != bindings_.end()) index(found->second, false);
  bindings_.insert_or_assign(key, object);
  index(object, true);
}

void RbacAuthorizer::erase(const kube::Resource& resource, const kube::Object& object) {
  const Binding key{std::string{object.ns()}, std::string{object.name()}};
  if (resource.kind.ends_with("Role")) {
    roles_.erase(key);
    return;
  }
  if (const auto found = bindings_.find(key); found != bindings_.end()) {
    index(found->second, false);
    bindings_.erase(found);
  }
}

}  // namespace hubferry::sim
