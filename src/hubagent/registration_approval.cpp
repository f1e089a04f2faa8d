#include "hubagent/registration_approval.hpp"

#include "hubagent/annotations.hpp"
#include "hubagent/self_registration.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/ocm/agent_request.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::certificate_signing_requests;

/// One run of approve_registrations().
struct Approval {
  Hub& hub;
  MigrationRef migration;
  std::set<std::string> clusters;
  std::string user;  // the only one whose requests are approved
  kube::Cache<Object> requests;
  std::optional<Error> error;
};

/// Longer, it might not fit into a URL everywhere.
constexpr std::size_t longest_selector = 2'000;

/// Those of these clusters, or of all if there are many: a hub keeps each request for an hour, and several migrations
/// may follow them.
std::string requests_selector(const std::set<std::string>& clusters) {
  std::string names;
  for (const auto& cluster : clusters) {
    names += (names.empty() ? "" : ",") + cluster;
    if (names.size() > longest_selector) return ocm::names::cluster_name_label;
  }
  return names.empty() ? ocm::names::cluster_name_label : ocm::names::cluster_name_label + (" in (" + names + ")");
}

kube::CacheOptions requests_of(const std::set<std::string>& clusters) {
  kube::CacheOptions options;
  options.label_selector = requests_selector(clusters);
  return options;
}

/// Keeps of requests that are decided only that they are: their certificates are several kilobytes each.
class RequestDecoder final : public kube::Decoder {
 public:
  [[nodiscard]] kube::Result<kube::Decoded> from_bytes(std::string_view bytes) const override {
    return shortened(kube::object_decoder().from_bytes(bytes));
  }
  [[nodiscard]] kube::Result<kube::Decoded> from_object(const Object& object) const override {
    return shortened(kube::object_decoder().from_object(object));
  }

 private:
  static kube::Result<kube::Decoded> shortened(kube::Result<kube::Decoded> decoded) {
    const auto* object = decoded ? static_cast<const Object*>(decoded->object.get()) : nullptr;
    if (object == nullptr || !ocm::is_decided(*object)) return decoded;
    json::object conditions{{"conditions", *object->find({"status", "conditions"})}};
    decoded->object = std::make_shared<const Object>(json::object{{"status", std::move(conditions)}});
    return decoded;
  }
};

const kube::Decoder& request_decoder() {
  static const RequestDecoder decoder;
  return decoder;
}

bool has_copy(const Approval& approval, const std::string& cluster) {
  const auto copy = approval.hub.clusters().get(cluster_scoped(cluster));
  return copy != nullptr && copy->label(migration_label) == approval.migration.uid;
}

/// Why the request is not approved; nullopt: it is one of ours.
Awaitable<std::optional<std::string>> find_objection(const Approval& approval, Object request) {
  const auto asked = ocm::read_agent_request(request);
  if (!asked) co_return "it does not ask for exactly the client certificate of its cluster's agent";
  if (has_copy(approval, asked->cluster)) co_return std::nullopt;
  // Somebody deleted the copy, and the agent has registered without it.
  auto adopted = co_await adopt_registered(approval.hub, approval.migration, asked->cluster);
  if (!adopted) co_return adopted.error().describe();
  if (*adopted) co_return std::nullopt;
  co_return "the ManagedCluster is not the migration's own";
}

Awaitable<> approve_one(Approval& approval, Object request, async::TaskScope& scope) {
  auto& hub = approval.hub;
  const auto& log = hub.env().log;
  const std::string cluster{request.label(ocm::names::cluster_name_label)};
  if (const auto objection = co_await find_objection(approval, request)) {
    log.warn("certificate request not approved",
             {{"cluster", cluster}, {"request", std::string{request.name()}}, {"reason", *objection}});
    co_return;
  }
  auto slot = co_await hub.slot();
  auto approve = [now = hub.env().clock.wall_now()](json::object& object) {
    if (ocm::is_decided(Object{object})) return false;
    auto& conditions = kube::array_in(kube::object_in(object, "status"), "conditions");
    conditions.push_back(ocm::approval_condition(
        "ApprovedByHubferry", "the cluster is being moved to this hub by a ManagedClusterMigration", now));
    return true;
  };
  kube::EditOptions options;
  options.subresource = "approval";
  auto attempt = [&] { return kube::edit(hub.api(), certificate_signing_requests, request, approve, options); };
  auto approved = co_await with_retry(hub, attempt);
  slot.release();
  if (approved) {
    log.info("certificate request approved", {{"cluster", cluster}, {"request", std::string{request.name()}}});
    co_return;
  }
  if (approved.error().kind == ErrorKind::not_found) co_return;
  Error error = Error{approved.error()}.in_context("cannot approve the certificate request of cluster " + cluster +
                                                   " on hub " + hub.name());
  log.warn("certificate request not approved", {{"cluster", cluster}, {"error", error.describe()}});
  // One request that fails by itself must not keep the others waiting; a missing permission concerns all of them.
  if (!concerns_hub(error) && !error.is(ErrorKind::forbidden)) co_return;
  if (!approval.error) approval.error = std::move(error);
  scope.stop();
}

}  // namespace

Awaitable<Result<RegistrationRight>> registration_right(const Hub& hub, MigrationRef migration) {
  const Key key = cluster_scoped(registration_name(migration));
  auto binding = co_await get_if_exists(hub, kube::resources::cluster_role_bindings, key);
  if (!binding) co_return binding.error();
  if (!*binding || !is_ours(migration, **binding)) co_return RegistrationRight{};
  const auto* subjects = (*binding)->find({"subjects"});
  if (subjects == nullptr || !subjects->is_array() || subjects->get_array().size() != 1) co_return RegistrationRight{};
  const auto& subject = subjects->get_array()[0].as_object();
  if (kube::string_at(subject, {"kind"}) != "ServiceAccount") co_return RegistrationRight{};
  RegistrationRight right;
  try {
    right.since = async::parse_time((*binding)->string_at({"metadata", "creationTimestamp"}));
  } catch (const std::invalid_argument&) {
    co_return RegistrationRight{};  // no API server leaves it out
  }
  right.user = "system:serviceaccount:" + std::string{kube::string_at(subject, {"namespace"})} + ":" +
               std::string{kube::string_at(subject, {"name"})};
  co_return right;
}

std::string registration_name(const MigrationRef& migration) {
  return "global-hub-migration-" + migration.name + "-registration";
}

Awaitable<Result<>> approve_registrations(Hub& hub, MigrationRef migration, std::set<std::string> clusters) {
  auto right = co_await registration_right(hub, migration);
  if (!right) co_return right.error();
  // A cache does not report why it is not synced: a live request does.
  kube::ListOptions one;
  one.limit = 1;
  one.label_selector = ocm::names::cluster_name_label;
  auto attempt = [&] { return hub.api().list(certificate_signing_requests, one, kube::object_decoder()); };
  auto page = co_await with_retry(hub, attempt);
  if (!page) co_return Error{page.error()}.in_context("cannot list certificate requests on hub " + hub.name());
  if (right->user.empty()) {
    // No permission, no registration: the caller waits for clusters that have registered before.
    co_await hub.env().clock.sleep_until(async::never);
  }
  Approval approval{hub,
                    std::move(migration),
                    clusters,
                    right->user,
                    {hub.api(), certificate_signing_requests, requests_of(clusters), request_decoder(), hub.env()},
                    std::nullopt};
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    auto subscription = approval.requests.subscribe([&](const Key&, const auto& old, const auto& now) {
      if (old != nullptr || now == nullptr || ocm::is_decided(*now)) return;
      if (now->string_at({"spec", "username"}) != approval.user) return;
      if (!approval.clusters.contains(std::string{now->label(ocm::names::cluster_name_label)})) return;
      scope.spawn(approve_one(approval, *now, scope));
    });
    co_await approval.requests.run();
  };
  co_await async::with_scope(std::move(body));
  if (approval.error) co_return *approval.error;
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
