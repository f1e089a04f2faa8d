#include "hubferry/ocm/agent_request.hpp"

#include <openssl/pem.h>

#include <algorithm>
#include <array>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/openssl.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::ocm {

namespace {

namespace openssl = kube::openssl;

constexpr std::string_view subject_prefix = "system:open-cluster-management:";
constexpr std::string_view common_group = "system:open-cluster-management:managed-clusters";
constexpr std::string_view pem_begin = "-----BEGIN CERTIFICATE REQUEST-----";
constexpr std::string_view client_usage = "client auth";
constexpr std::array<std::string_view, 3> allowed_usages{"digital signature", "key encipherment", client_usage};

struct RequestSubject {
  std::vector<std::string> common_names;
  std::vector<std::string> organizations;
};

std::optional<RequestSubject> read_subject(const std::string& pem) {
  const auto begin = pem.find("-----BEGIN ");
  if (begin == std::string::npos || pem.compare(begin, pem_begin.size(), pem_begin) != 0) return std::nullopt;
  const auto text = openssl::reader_of(pem);
  const openssl::Request request{PEM_read_bio_X509_REQ(text.get(), nullptr, nullptr, nullptr)};
  if (request == nullptr) return std::nullopt;
  const auto* name = X509_REQ_get_subject_name(request.get());
  return RequestSubject{openssl::entries_of(name, NID_commonName), openssl::entries_of(name, NID_organizationName)};
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

/// A certificate for a client, and for nothing else.
bool has_client_usages(const kube::Object& request) {
  const auto* usages = request.find({"spec", "usages"});
  if (usages == nullptr || !usages->is_array()) return false;
  const auto is = [](std::string_view name) {
    return [name](const kube::json::value& usage) { return usage.is_string() && usage.get_string() == name; };
  };
  const auto is_allowed = [&](const kube::json::value& usage) {
    return std::ranges::any_of(allowed_usages, [&](std::string_view name) { return is(name)(usage); });
  };
  return std::ranges::all_of(usages->get_array(), is_allowed) &&
         std::ranges::any_of(usages->get_array(), is(client_usage));
}

}  // namespace

std::optional<AgentRequest> read_agent_request(const kube::Object& request) {
  const std::string cluster{request.label(names::cluster_name_label)};
  if (cluster.empty() || request.string_at({"spec", "signerName"}) != agent_signer || !has_client_usages(request))
    return std::nullopt;
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

bool is_decided(const kube::Object& request) {
  const auto* conditions = request.find({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::ranges::any_of(conditions->get_array(), [](const kube::json::value& condition) {
    if (!condition.is_object()) return false;
    const auto type = kube::string_at(condition.get_object(), {"type"});
    return type == "Approved" || type == "Denied";
  });
}

kube::json::object approval_condition(std::string_view reason, std::string_view message, async::WallTime now) {
  return {{"type", "Approved"},
          {"status", "True"},
          {"reason", reason},
          {"message", message},
          {"lastUpdateTime", async::format_time(now)}};
}

}  // namespace hubferry::ocm
