#include "sim/ocm/certificate_request.hpp"

#include <openssl/pem.h>

#include <vector>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/openssl.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::sim {

namespace {

namespace openssl = kube::openssl;

constexpr std::string_view subject_prefix = "system:open-cluster-management:";
constexpr std::string_view common_group = "system:open-cluster-management:managed-clusters";
constexpr std::string_view agent_signer = "kubernetes.io/kube-apiserver-client";
constexpr std::string_view pem_begin = "-----BEGIN CERTIFICATE REQUEST-----";

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

/// "…:<cluster>:<agent>", both parts there and no more.
std::optional<AgentRequest> parse_common_name(const std::string& text) {
  if (!text.starts_with(subject_prefix)) return std::nullopt;
  const std::string parts = text.substr(subject_prefix.size());
  const auto colon = parts.find(':');
  if (colon == std::string::npos || parts.find(':', colon + 1) != std::string::npos) return std::nullopt;
  AgentRequest found{parts.substr(0, colon), parts.substr(colon + 1), text};
  if (found.cluster.empty() || found.agent.empty()) return std::nullopt;
  return found;
}

}  // namespace

std::optional<AgentRequest> recognise_request(const kube::Object& request) {
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

}  // namespace hubferry::sim
