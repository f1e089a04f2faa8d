#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::klusterlet {

/// Whether a hub accepts a cluster. Pending is not denied: a cluster that was never accepted waits, one whose
/// acceptance was revoked must leave.
enum class Acceptance {
  pending,   // never accepted so far
  accepted,  // spec.hubAcceptsClient
  denied,    // was accepted before, or was denied by an administrator
};
Acceptance acceptance_of(const ocm::ManagedCluster& cluster);
/// The same of an undecoded object; pending if it cannot be decoded.
Acceptance acceptance_of_object(const kube::Object& cluster);

/// One bootstrap kubeconfig as the selection sees it.
struct Candidate {
  std::string name;
  std::string server;
  std::string unreadable;  // why its kubeconfig cannot be used; empty: it can
  /// We left it recently because of a failure, so others are probed first: otherwise a hub that answers, but does not
  /// receive our heartbeats, would be selected again and again.
  bool demoted = false;
  /// As in BootstrapConfig.
  bool fallback = false;
};

/// The result of probing a candidate.
struct Verdict {
  bool valid = false;
  std::string reason = {};                   // why it is not valid
  bool registered = false;                   // our ManagedCluster exists there
  std::optional<kube::Object> cluster = {};  // it, if so
  bool rejects_certificate = false;          // that which we have: a new one is needed
  bool accepts_certificate = false;          // valid by it, not by the bootstrap credential
};

/// Selects the hub of an agent. Decides which candidate is probed next; does no I/O itself.
///
/// The current hub if it is still valid; else the first valid one in order. No candidate is probed twice, and an agent
/// does not return to a hub only because it is further up in the list.
///
///   while (auto index = selection.next()) selection.report(*index, co_await probe(…));
class HubSelection {
 public:
  /// `current_server`: that of the stored hub kubeconfig; empty if there is none. Of two candidates with that server
  /// the first one is used.
  HubSelection(std::vector<Candidate> candidates, std::string_view current_server);

  /// The candidate to probe next; nullopt when one is selected or none is left.
  std::optional<std::size_t> next();
  void report(std::size_t index, Verdict verdict);

  [[nodiscard]] std::optional<std::size_t> selected() const { return selected_; }
  /// The selected hub's verdict.
  [[nodiscard]] const Verdict& verdict() const { return verdict_; }
  /// If none is selected: a message that names every candidate with its reason.
  [[nodiscard]] std::string explain(std::string_view cluster) const;

 private:
  std::vector<Candidate> candidates_;
  std::vector<std::string> reasons_;  // by candidate
  std::vector<std::size_t> order_;
  std::size_t probed_ = 0;  // of order_
  std::optional<std::size_t> selected_;
  Verdict verdict_;
};

/// Per candidate: a hub behind a firewall that drops packets must not delay the selection.
inline constexpr auto probe_timeout = std::chrono::seconds{10};

struct Permission {
  const kube::Resource* resource = nullptr;
  const char* verb = nullptr;
};
/// What a bootstrap credential needs, in the order in which Open Cluster Management checks it.
std::span<const Permission> needed_permissions();

/// What a SelfSubjectRulesReview says about them.
struct ListedPermissions {
  std::vector<Permission> missing;
  bool complete = false;  // what is missing is not allowed; else it may be, by rules that the server cannot list
};
ListedPermissions read_rules(const kube::Object& review);

/// Probes whether this hub would accept us, with the bootstrap credential: checks each permission that registration
/// needs, and reads our ManagedCluster. Two requests, unless the hub cannot list the rules of a user: then each
/// permission that is not listed is reviewed. A request that the hub refuses for now (429, 5xx) is repeated until
/// `deadline`: a hub with a fleet in front of it is busy, not invalid.
async::Awaitable<Verdict> probe(kube::Api& api, std::string cluster, const kube::Env& env, async::TimePoint deadline);

/// Probes the same with the certificate that we have. An error leaves it open: the bootstrap credential decides then.
async::Awaitable<kube::Result<Verdict>> probe_with_certificate(kube::Api& api, std::string cluster,
                                                               const kube::Env& env, async::TimePoint deadline);

}  // namespace hubferry::klusterlet
