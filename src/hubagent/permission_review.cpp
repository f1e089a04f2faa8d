#include "hubagent/permission_review.hpp"

#include <algorithm>
#include <set>

#include "hubagent/clusters.hpp"
#include "hubagent/selection.hpp"
#include "hubferry/hubagent/hub_permissions.hpp"
#include "hubferry/kube/access_rules.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// No such namespace exists, so only the rules for all namespaces hold there.
constexpr auto no_namespace = "hubferry-permission-review";

using Permissions = std::vector<HubPermission>;

std::vector<std::string> texts_of(const Permissions& permissions) {
  std::vector<std::string> texts;
  for (const auto& permission : permissions) texts.push_back(permission.text());
  return texts;
}

class PermissionReview {
 public:
  PermissionReview(Hub& hub, HubRole role) : hub_(hub), role_(role) {}

  Awaitable<Result<MissingPermissions>> run(ClusterNames clusters) {
    auto groups = co_await served_groups();
    if (!groups) co_return groups.error();
    auto on_hub = co_await rules_in(no_namespace);
    if (!on_hub) co_return on_hub.error();
    auto carried = co_await served_carried_kinds(hub_);
    if (!carried) co_return carried.error();
    for (auto permissions : hub_permissions()) {
      if (!is_needed(permissions)) continue;
      if (permissions.per_cluster) add_carried(*carried, permissions.needed);
      std::erase_if(permissions.needed, [&](const HubPermission& needed) {
        return !groups->contains(needed.resource.group) || allows(*on_hub, needed);
      });
      auto missing = co_await missing_on_hub(permissions, on_hub->complete());
      if (!missing) co_return missing.error();
      if (missing->empty()) continue;
      if (!permissions.per_cluster) {
        add(*missing, permissions.advice);
        continue;
      }
      auto reviewed = co_await review_namespaces(*missing, permissions.advice, clusters);
      if (!reviewed) co_return reviewed.error();
    }
    co_return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_needed(const HubPermissions& permissions) const {
    const bool for_role = role_ == HubRole::source ? permissions.for_source : permissions.for_target;
    return for_role && (permissions.per_cluster || !permissions.optional);
  }

  static bool allows(const kube::AccessRules& rules, const HubPermission& needed) {
    return rules.allow(needed.verb, needed.resource, needed.subresource, needed.key.name);
  }

  void add(const Permissions& missing, const std::string& advice) {
    const auto reads_clusters = [](const HubPermission& permission) {
      return permission.resource.plural == ocm::managed_clusters.plural && permission.subresource.empty() &&
             (permission.verb == "list" || permission.verb == "watch");
    };
    if (std::ranges::any_of(missing, reads_clusters)) result_.may_read_clusters = false;
    result_.on_hub.emplace_back(
        FailureReason::permission_missing,
        "our account on hub " + hub_.name() + " may not " + joined_permissions(texts_of(missing)) + ": " + advice);
  }

  /// What the documentation asks for kinds that a user has added. The manifests have the others.
  void add_carried(const CarriedResources& carried, Permissions& needed) const {
    const auto verbs = role_ == HubRole::source ? std::vector<std::string>{"get", "list"}
                                                : std::vector<std::string>{"get", "list", "create", "patch", "delete"};
    for (const auto& kind : carried) {
      const auto is_it = [&](const CarriedKind& known) { return known.resource == kind.resource; };
      if (std::ranges::any_of(default_carried_resources(), is_it)) continue;
      for (const auto& verb : verbs) needed.push_back({verb, kind.resource});
    }
  }

  /// The API groups of the hub, "" for the core group.
  Awaitable<Result<std::set<std::string>>> served_groups() {
    auto attempt = [&] { return hub_.api().get_path("/apis"); };
    auto answer = co_await with_retry(hub_, attempt);
    if (!answer) co_return Error{answer.error()}.in_context("cannot list the API groups of hub " + hub_.name());
    // Permissions that belong to no kind of the group: Open Cluster Management's webhook asks for them.
    std::set<std::string> groups{"", "register.open-cluster-management.io"};
    if (const auto* listed = kube::find(*answer, {"groups"}); listed != nullptr && listed->is_array())
      for (const auto& group : listed->get_array())
        if (group.is_object()) groups.emplace(kube::string_at(group.get_object(), {"name"}));
    co_return groups;
  }

  /// Not complete, and without a rule, if the hub refuses to list them.
  Awaitable<Result<kube::AccessRules>> rules_in(std::string ns) {
    const json::object body{{"spec", json::object{{"namespace", ns}}}};
    auto attempt = [&] { return hub_.api().create(kube::resources::self_subject_rules_reviews, body); };
    auto review = co_await with_retry(hub_, attempt);
    if (review) co_return kube::AccessRules{*review};
    if (stops_all(Error{review.error()}))
      co_return Error{review.error()}.in_context("cannot review our own access to hub " + hub_.name());
    co_return kube::AccessRules{};
  }

  /// Those of `candidates` that a single review denies.
  Awaitable<Result<Permissions>> denied(Permissions candidates, std::string ns) {
    Permissions missing;
    for (auto& candidate : candidates) {
      auto key = candidate.key;
      if (!ns.empty()) key.ns = ns;
      auto attempt = [&] { return hub_.api().may(candidate.verb, candidate.resource, key, candidate.subresource); };
      auto allowed = co_await with_retry(hub_, attempt);
      if (!allowed && stops_all(Error{allowed.error()}))
        co_return Error{allowed.error()}.in_context("cannot review our own access to hub " + hub_.name());
      if (allowed && !*allowed) missing.push_back(std::move(candidate));
    }
    co_return missing;
  }

  /// What is left of permissions that no rule for all namespaces grants: some are needed in one namespace only.
  Awaitable<Result<Permissions>> missing_on_hub(HubPermissions permissions, bool complete) {
    Permissions missing;
    std::map<std::string, Permissions> by_namespace;
    for (auto& needed : permissions.needed) by_namespace[needed.key.ns].push_back(std::move(needed));
    for (auto& [ns, needed] : by_namespace) {
      auto left = co_await missing_in(std::move(needed), ns, complete);
      if (!left) co_return left.error();
      std::ranges::move(*left, std::back_inserter(missing));
    }
    co_return missing;
  }

  /// `complete`: so were the rules for all namespaces, which do not have them.
  Awaitable<Result<Permissions>> missing_in(Permissions needed, std::string ns, bool complete) {
    if (!ns.empty()) {
      auto rules = co_await rules_in(ns);
      if (!rules) co_return rules.error();
      std::erase_if(needed, [&](const HubPermission& permission) { return allows(*rules, permission); });
      complete = rules->complete();
    }
    if (complete || needed.empty()) co_return needed;
    co_return co_await denied(std::move(needed), std::move(ns));
  }

  Awaitable<Result<>> review_namespaces(Permissions permissions, std::string advice, ClusterNames clusters) {
    auto process = [&](std::string cluster, Slot) -> Awaitable<Result<>> {
      auto missing = co_await missing_in(permissions, cluster, true);
      if (!missing) co_return missing.error();
      auto exists = co_await namespace_exists(*missing, cluster);
      if (!exists) co_return exists.error();
      if (*exists) std::erase_if(*missing, creates_namespaces);
      if (missing->empty()) co_return Result<>{};
      co_return Error{FailureReason::permission_missing, "our account on hub " + hub_.name() + " may not " +
                                                             joined_permissions(texts_of(*missing)) + " in namespace " +
                                                             cluster + ": " + advice};
    };
    auto outcome = co_await for_each_cluster(hub_, std::move(clusters), process);
    if (!outcome) co_return outcome.error();
    for (auto& [cluster, reason, message] : outcome->failed)
      result_.in_namespaces.insert_or_assign(cluster, Error{reason, std::move(message)});
    co_return Result<>{};
  }

  static bool creates_namespaces(const HubPermission& permission) {
    return permission.resource.plural == kube::resources::namespaces.plural && permission.verb == "create";
  }

  /// An account that may not create namespaces needs one that is there. Not asked if that does not matter.
  Awaitable<Result<bool>> namespace_exists(const Permissions& missing, std::string cluster) {
    if (std::ranges::none_of(missing, creates_namespaces)) co_return false;
    auto found = co_await get_if_exists(hub_, kube::resources::namespaces, cluster_scoped(std::move(cluster)));
    if (!found && stops_all(found.error())) co_return found.error();
    co_return found && *found;
  }

  Hub& hub_;
  HubRole role_;
  MissingPermissions result_;
};

}  // namespace

Awaitable<Result<MissingPermissions>> review_permissions(Hub& hub, HubRole role, ClusterNames clusters) {
  PermissionReview review{hub, role};
  co_return co_await review.run(std::move(clusters));
}

Awaitable<Result<Outcome>> with_permissions(Hub& hub, HubRole role, ClusterNames clusters, ValidateClusters validate) {
  if (!hub.options().review_permissions) co_return co_await validate(std::move(clusters));
  auto missing = co_await review_permissions(hub, role, clusters);
  if (!missing) co_return missing.error();
  Outcome merged;
  if (missing->may_read_clusters) {
    if (role == HubRole::target)
      std::erase_if(clusters, [&](const std::string& cluster) { return missing->in_namespaces.contains(cluster); });
    auto outcome = co_await validate(std::move(clusters));
    // A permission that is missing on the whole hub is named already.
    if (!outcome && !(outcome.error().is(ErrorKind::forbidden) && !missing->on_hub.empty())) co_return outcome.error();
    if (outcome) merged = std::move(*outcome);
  }
  merged.of_hub = std::move(missing->on_hub);
  auto& in_namespaces = missing->in_namespaces;
  std::erase_if(merged.done, [&](const std::string& cluster) { return in_namespaces.contains(cluster); });
  for (auto& failure : merged.failed)
    if (const auto found = in_namespaces.extract(failure.cluster)) failure.message += "; " + found.mapped().message();
  for (const auto& [cluster, error] : in_namespaces)
    merged.failed.push_back({cluster, error.reason(), error.message()});
  co_return merged;
}

}  // namespace hubferry::hubagent
