#include <algorithm>
#include <set>
#include <sstream>

#include "hubagent/own_objects.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

constexpr const char* cluster_manager = "cluster-manager";
constexpr const char* gate_name = "ManagedClusterAutoApproval";

constexpr const char* was_absent = "absent";
constexpr const char* was_disabled = "disabled";

bool is_our_gate(const json::value& gate) {
  return gate.is_object() && kube::string_at(gate.get_object(), {"feature"}) == gate_name;
}

bool enable_gate(json::object& object, json::object& registration) {
  auto& gates = kube::array_in(registration, "featureGates");
  const auto gate = std::ranges::find_if(gates, is_our_gate);
  if (gate == gates.end()) {
    json::object enabled;
    enabled["feature"] = gate_name;
    enabled["mode"] = "Enable";
    gates.push_back(std::move(enabled));
    set_annotation(object, annotations::auto_approval_before, was_absent);
    return true;
  }
  auto& mode = gate->get_object()["mode"];
  if (mode == "Enable") return false;
  mode = "Enable";
  set_annotation(object, annotations::auto_approval_before, was_disabled);
  return true;
}

/// The users of our migrations, as recorded on the object.
std::set<std::string> recorded_users(const json::object& object) {
  std::set<std::string> users;
  std::istringstream text{std::string{annotation_text(object, annotations::auto_approval_users)}};
  for (std::string user; std::getline(text, user, ',');) users.insert(user);
  return users;
}

void record_users(json::object& object, const std::set<std::string>& users) {
  std::string text;
  for (const auto& user : users) text += (text.empty() ? "" : ",") + user;
  if (text.empty())
    drop_annotation(object, annotations::auto_approval_users);
  else
    set_annotation(object, annotations::auto_approval_users, text);
}

bool add_user(json::object& object, json::object& registration, const std::string& user) {
  auto& users = kube::array_in(registration, "autoApproveUsers");
  if (std::ranges::find(users, json::value(user)) != users.end()) return false;
  users.emplace_back(user);
  auto recorded = recorded_users(object);
  recorded.insert(user);
  record_users(object, recorded);
  return true;
}

bool add_approval(json::object& object, const std::string& user) {
  auto& registration = kube::object_in(kube::object_in(object, "spec"), "registrationConfiguration");
  const bool gate = enable_gate(object, registration);
  const bool added = add_user(object, registration, user);
  return gate || added;
}

void revert_gate(json::object& object, json::object& registration) {
  const std::string before{annotation_text(object, annotations::auto_approval_before)};
  if (before.empty()) return;
  drop_annotation(object, annotations::auto_approval_before);
  auto* configured = registration.if_contains("featureGates");
  if (configured == nullptr || !configured->is_array()) return;
  auto& gates = configured->get_array();
  const auto gate = std::ranges::find_if(gates, is_our_gate);
  if (gate == gates.end()) return;
  if (before == was_disabled)
    gate->get_object()["mode"] = "Disable";
  else
    gates.erase(gate);
  if (gates.empty()) registration.erase("featureGates");
}

/// Removes the user; with the last one of ours the gate returns to its previous state. Other users in the list were
/// there without the gate.
bool remove_approval(json::object& object, const std::string& user) {
  auto recorded = recorded_users(object);
  if (recorded.erase(user) == 0) return false;
  record_users(object, recorded);
  auto& spec = kube::object_in(object, "spec");
  auto& registration = kube::object_in(spec, "registrationConfiguration");
  auto& users = kube::array_in(registration, "autoApproveUsers");
  if (const auto found = std::ranges::find(users, json::value(user)); found != users.end()) users.erase(found);
  if (users.empty()) registration.erase("autoApproveUsers");
  if (recorded.empty()) revert_gate(object, registration);
  if (registration.empty()) spec.erase("registrationConfiguration");
  return true;
}

}  // namespace

Awaitable<Result<>> enable_auto_approval(Hub& hub, std::string user) {
  auto served = co_await serves(hub, ocm::cluster_managers);
  if (!served) co_return served.error();
  if (!*served) co_return Result<>{};
  auto mutate = [&](json::object& object) { return add_approval(object, user); };
  auto edited = co_await edit(hub, ocm::cluster_managers, cluster_scoped(cluster_manager), mutate);
  if (edited) co_return Result<>{};
  if (edited.error().is(ErrorKind::not_found))
    co_return Error{FailureReason::error, "hub " + hub.name() + " has no ClusterManager " + cluster_manager +
                                              ": nobody would approve the arriving clusters"};
  co_return edited.error();
}

Awaitable<Result<>> disable_auto_approval(Hub& hub, std::string user) {
  auto found = co_await get_if_exists(hub, ocm::cluster_managers, cluster_scoped(cluster_manager));
  if (!found) co_return found.error();
  if (!*found) co_return Result<>{};
  auto mutate = [&](json::object& object) { return remove_approval(object, user); };
  co_return co_await edit_if_exists(hub, ocm::cluster_managers, **found, mutate);
}

}  // namespace hubferry::hubagent
