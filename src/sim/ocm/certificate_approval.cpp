#include <openssl/pem.h>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/openssl.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

namespace resources = kube::resources;
namespace openssl = kube::openssl;

constexpr std::string_view subject_prefix = "system:open-cluster-management:";
constexpr std::string_view common_group = "system:open-cluster-management:managed-clusters";
constexpr std::string_view agent_signer = "kubernetes.io/kube-apiserver-client";
constexpr std::string_view pem_begin = "-----BEGIN CERTIFICATE REQUEST-----";

/// A CertificateSigningRequest of a cluster's agent.
struct AgentRequest {
  std::string cluster;
  std::string agent;
  std::string common_name;
};

struct Subject {
  std::vector<std::string> common_names;
  std::vector<std::string> organizations;
};

std::optional<Subject> read_subject(const std::string& pem) {
  const auto begin = pem.find("-----BEGIN ");
  if (begin == std::string::npos || pem.compare(begin, pem_begin.size(), pem_begin) != 0) return std::nullopt;
  const auto text = openssl::reader_of(pem);
  const openssl::Request request{PEM_read_bio_X509_REQ(text.get(), nullptr, nullptr, nullptr)};
  if (request == nullptr) return std::nullopt;
  const auto* name = X509_REQ_get_subject_name(request.get());
  return Subject{openssl::entries_of(name, NID_commonName), openssl::entries_of(name, NID_organizationName)};
}

/// "…:<cluster>:<agent>", exactly these two parts.
std::optional<AgentRequest> parse_common_name(const std::string& text) {
  if (!text.starts_with(subject_prefix)) return std::nullopt;
  const std::string parts = text.substr(subject_prefix.size());
  const auto colon = parts.find(':');
  if (colon == std::string::npos || parts.find(':', colon + 1) != std::string::npos) return std::nullopt;
  AgentRequest found{parts.substr(0, colon), parts.substr(colon + 1), text};
  if (found.cluster.empty() || found.agent.empty()) return std::nullopt;
  return found;
}

/// Recognizes a request if its label, signer and subject agree; otherwise it is left for an administrator. The
/// comparison is exact: a cluster must not get the certificate of another whose name begins with its own.
std::optional<AgentRequest> recognize_request(const kube::Object& request) {
  const std::string cluster{request.label(ocm::names::cluster_name_label)};
  if (cluster.empty() || request.string_at({"spec", "signerName"}) != agent_signer) return std::nullopt;
  const auto pem = kube::decode_base64(request.string_at({"spec", "request"}));
  auto subject = pem ? read_subject(*pem) : std::nullopt;
  if (!subject || subject->common_names.size() != 1) return std::nullopt;
  std::erase(subject->organizations, common_group);
  if (subject->organizations.size() != 1 || subject->organizations[0] != std::string{subject_prefix} + cluster)
    return std::nullopt;
  auto found = parse_common_name(subject->common_names[0]);
  if (!found || found->cluster != cluster) return std::nullopt;
  return found;
}

bool is_decided(const Object& request) {
  const auto* conditions = request.find({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  for (const auto& condition : conditions->get_array()) {
    if (!condition.is_object()) continue;
    const auto type = kube::string_at(condition.get_object(), {"type"});
    if (type == "Approved" || type == "Denied") return true;
  }
  return false;
}

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
        if (!is_decided(*request)) queue_.add(key);
      });
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto request = hub_.requests.get(key);
    if (request == nullptr || is_decided(*request)) co_return Done{};
    const auto agent = recognize_request(*request);
    if (!agent) co_return Done{};
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
    auto done = co_await approve(*request);
    co_return done;
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

  Awaitable<Done> approve(Object request) {
    const auto time = async::format_time(hub_.env.clock.wall_now());
    kube::Mutation mutate = [time](json::object& object) {
      if (is_decided(Object{object})) return false;
      auto& conditions = kube::array_in(kube::object_in(object, "status"), "conditions");
      conditions.push_back(
          json::object{{"type", "Approved"},
                       {"status", "True"},
                       {"reason", "AutoApprovedByHubCSRApprovingController"},
                       {"message", "Auto approving Managed cluster agent certificate after SubjectAccessReview."},
                       {"lastUpdateTime", time}});
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
