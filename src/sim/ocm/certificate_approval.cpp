#include "hubferry/ocm/agent_request.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

namespace resources = kube::resources;

/// Checks whether the requester may renew, as the requester.
json::object renewal_review(const Object& request) {
  json::object spec{{"user", request.string_at({"spec", "username"})},
                    {"resourceAttributes", json::object{{"group", "register.open-cluster-management.io"},
                                                        {"resource", "managedclusters"},
                                                        {"verb", "renew"},
                                                        {"subresource", "clientcertificates"}}}};
  for (const char* field : {"uid", "groups", "extra"})
    if (const auto* value = request.find({"spec", field})) spec[field] = *value;
  return {{"spec", std::move(spec)}};
}

/// Approves the certificate requests of agents that are entitled to them.
class CertificateApproval final : public HubController {
 public:
  explicit CertificateApproval(HubContext& hub) : HubController(hub, "certificate-approval") {
    follow(hub.requests, [this](const Key& key, const auto& old, const auto& now) {
      if (old == nullptr && now != nullptr) queue_.add(key);
    });
    // The list of trusted users may have changed.
    follow(hub.managers, [this](const Key&, const auto&, const auto&) {
      hub_.requests.for_each([&](const Key& key, const auto& request) {
        if (!ocm::is_decided(*request)) queue_.add(key);
      });
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto request = hub_.requests.get(key);
    if (request == nullptr || ocm::is_decided(*request)) co_return Done{};
    const auto agent = ocm::read_agent_request(*request);
    if (!agent) co_return Done{};
    if (is_by_import_account(*request)) co_return co_await approve(*request, "AutoApprovedByCSRController");
    bool approved = false;
    const bool renewal = request->string_at({"spec", "username"}) == agent->common_name;
    if (renewal) {
      auto review = co_await hub_.api.create(resources::subject_access_reviews, renewal_review(*request));
      if (!review) co_return review.error();
      const auto* allowed = review->find({"status", "allowed"});
      approved = allowed != nullptr && allowed->is_bool() && allowed->get_bool();
    } else {
      approved = trusts(request->string_at({"spec", "username"}));
    }
    if (!approved) co_return Done{};
    auto done = co_await approve(*request, "AutoApprovedByHubCSRApprovingController");
    co_return done;
  }

  /// The import controller approves what a cluster's own bootstrap account requests for that cluster.
  [[nodiscard]] bool is_by_import_account(const Object& request) const {
    const std::string cluster{request.label(ocm::names::cluster_name_label)};
    return hub_.options.import_controller != ImportController::none &&
           request.string_at({"spec", "username"}) == import_names::bootstrap_user(cluster) &&
           hub_.clusters.get(cluster_key(cluster)) != nullptr;
  }

  /// True for users whose first certificates are approved automatically.
  [[nodiscard]] bool trusts(std::string_view user) const {
    if (!approves_automatically(hub_)) return false;
    const auto manager = hub_.managers.get(cluster_key(hub_names::cluster_manager));
    const auto* users = manager->find({"spec", "registrationConfiguration", "autoApproveUsers"});
    if (users == nullptr || !users->is_array()) return false;
    for (const auto& trusted : users->get_array())
      if (trusted.is_string() && trusted.get_string() == user) return true;
    return false;
  }

  Awaitable<Done> approve(Object request, const char* reason) {
    const auto now = hub_.env.clock.wall_now();
    kube::Mutation mutate = [now, reason](json::object& object) {
      if (ocm::is_decided(Object{object})) return false;
      auto& conditions = kube::array_in(kube::object_in(object, "status"), "conditions");
      conditions.push_back(ocm::approval_condition(
          reason, "Auto approving Managed cluster agent certificate after SubjectAccessReview.", now));
      return true;
    };
    kube::EditOptions how;
    how.subresource = "approval";
    auto written =
        co_await kube::edit(hub_.api, resources::certificate_signing_requests, request, std::move(mutate), how);
    if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
    co_return Done{};
  }
};

}  // namespace

std::unique_ptr<HubController> make_certificate_approval(HubContext& hub) {
  return std::make_unique<CertificateApproval>(hub);
}

}  // namespace hubferry::sim
