#include <array>
#include <map>

#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/self_registration.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/agent_request.hpp"

/// Whether the target takes the clusters, before they are detached. An agent that registers on a hub does that for
/// ever: if nobody there completes it, nothing brings it back but a restart.
namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// Controllers that run need a few seconds. A cluster that is not taken by then fails for now, so that the reason is
/// known; the migration tries again.
constexpr auto ready_timeout = std::chrono::seconds{20};

/// The account that clusters register with is allowed to.
Awaitable<Result<>> check_permission(const Hub& hub, MigrationRef migration) {
  auto right = co_await registration_right(hub, migration);
  if (!right) co_return right.error();
  const auto& user = right->user;
  if (user.empty())
    co_return Error{FailureReason::error, "hub " + hub.name() + " has no ClusterRoleBinding " +
                                              registration_name(migration) +
                                              ", by which the clusters' account may register"};
  json::object attributes{
      {"group", "certificates.k8s.io"}, {"resource", "certificatesigningrequests"}, {"verb", "create"}};
  json::object review{{"spec", json::object{{"user", user}, {"resourceAttributes", std::move(attributes)}}}};
  auto attempt = [&] { return hub.api().create(kube::resources::subject_access_reviews, review); };
  auto reviewed = co_await with_retry(hub, attempt);
  if (!reviewed) co_return Error{reviewed.error()}.in_context("cannot review the access of " + user);
  const auto* allowed = reviewed->find({"status", "allowed"});
  if (allowed != nullptr && *allowed == true) co_return Result<>{};
  co_return Error{FailureReason::error, user + " may not register clusters on hub " + hub.name()};
}

/// We are allowed to approve the requests that the clusters will send: without that they would wait for ever.
Awaitable<Result<>> check_approver(const Hub& hub) {
  const auto& requests = kube::resources::certificate_signing_requests;
  const kube::Resource signers{requests.group, requests.version, "signers", "Signer", false};
  struct Right {
    const char* verb;
    const kube::Resource& resource;
    Key key;
    const char* subresource;
  };
  const std::array<Right, 3> rights{Right{"list", requests, {}, ""}, Right{"update", requests, {}, "approval"},
                                    Right{"approve", signers, cluster_scoped(ocm::agent_signer), ""}};
  for (const auto& right : rights) {
    auto attempt = [&] { return hub.api().may(right.verb, right.resource, right.key, right.subresource); };
    auto allowed = co_await with_retry(hub, attempt);
    if (!allowed) co_return Error{allowed.error()}.in_context("cannot review our own access to hub " + hub.name());
    if (!*allowed)
      co_return Error{FailureReason::error, "we may not approve the registration of clusters on hub " + hub.name() +
                                                " (" + right.verb + " " + right.resource.plural +
                                                "): apply manifests/hub-rbac/approval there"};
  }
  co_return Result<>{};
}

/// An agent of Open Cluster Management sends no request while its hub has ten of its cluster; an arrival needs up to
/// three. They stay for an hour after their approval, so a cluster that moves to and fro can reach that.
constexpr std::size_t most_requests = 10 - 3;

/// How many requests of agents the hub has, by cluster; those of add-ons have a limit of their own.
Awaitable<Result<std::map<std::string, std::size_t>>> count_requests(const Hub& hub) {
  const std::string of_agents = std::string{cluster_name_label} + ",!" + addon_name_label;
  auto requests = co_await list(hub, kube::resources::certificate_signing_requests, {}, of_agents);
  if (!requests) co_return requests.error();
  std::map<std::string, std::size_t> counts;
  for (const auto& request : *requests) ++counts[std::string{request.label(cluster_name_label)}];
  co_return counts;
}

Error too_many_requests(const Hub& hub, const std::string& cluster, std::size_t count) {
  return {
      FailureReason::cluster_not_available,
      "cluster " + cluster + " is not detached now: hub " + hub.name() + " has " + std::to_string(count) +
          " certificate requests of it from the last hour, and with ten its agent would not register. Delete the old "
          "ones (kubectl delete csr -l " +
          cluster_name_label + "=" + cluster + "), or wait"};
}

bool is_accepted_copy(const ocm::ManagedCluster* cluster, const MigrationRef& migration) {
  return cluster != nullptr && cluster->label(migration_label) == migration.uid && !cluster->is_being_deleted() &&
         cluster->hub_accepts_client() && cluster->is_true(accepted);
}

Awaitable<Result<>> wait_until_ready(Hub& hub, WorkRule rule, MigrationRef migration, std::string cluster) {
  auto is_ready = [&](const ocm::ManagedCluster* seen) { return is_accepted_copy(seen, migration); };
  co_await hub.clusters().wait_for(cluster_scoped(cluster), is_ready, async::never);
  if (rule != WorkRule::applied) co_return Result<>{};
  co_return co_await wait_for_klusterlet_work(hub, migration, cluster);
}

Awaitable<Result<>> check_ready(Hub& hub, WorkRule rule, MigrationRef migration, std::string cluster) {
  auto& clock = hub.env().clock;
  const auto before = hub.clusters().get(cluster_scoped(cluster));
  if (before != nullptr && !before->label(migration_label)) {
    auto adopted = co_await adopt_registered(hub, migration, cluster);
    if (!adopted) co_return adopted.error();
  }
  const Waits::Entry waiting{*hub.waits(), migration.uid, cluster,
                             "hub " + hub.name() +
                                 " has not accepted the copy and prepared its import (do its registration and import "
                                 "controllers run?)"};
  auto ready = co_await async::before_deadline(clock, clock.now() + ready_timeout,
                                               wait_until_ready(hub, rule, migration, cluster));
  if (ready) co_return std::move(*ready);
  const auto seen = hub.clusters().get(cluster_scoped(cluster));
  const std::string missing =
      is_accepted_copy(seen.get(), migration)
          ? "the import controller there has not created ManifestWork " + cluster + "-klusterlet"
          : "the condition " + std::string{accepted} +
                " of its copy is not True: is the registration controller there running?";
  co_return Error{FailureReason::cluster_not_available, "cluster " + cluster + " was not detached: hub " + hub.name() +
                                                            " does not take it yet, since " + missing};
}

}  // namespace

Awaitable<Result<Outcome>> DirectTargetHub::await_ready(MigrationRef migration, ClusterNames clusters) {
  auto& hub = *hub_;
  auto synced = co_await wait_for_cluster_cache(hub);
  if (!synced) co_return synced.error();
  auto permitted = co_await check_permission(hub, migration);
  if (!permitted) co_return permitted.error();
  auto approver = co_await check_approver(hub);
  if (!approver) co_return approver.error();
  auto rule = co_await work_rule(hub);
  if (!rule) co_return rule.error();
  auto requests = co_await count_requests(hub);
  if (!requests) co_return requests.error();
  HubWatch<KlusterletWork>::Use use{hub.watches().klusterlet_works, *rule == WorkRule::applied ? clusters.size() : 0};
  co_await use.ready();
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    slot.release();
    if (const auto found = requests->find(cluster); found != requests->end() && found->second > most_requests)
      co_return too_many_requests(hub, cluster, found->second);
    co_return co_await check_ready(hub, *rule, migration, std::move(cluster));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), process);
}

}  // namespace hubferry::hubagent
