#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::klusterlet {

/// What a hub thinks of a cluster. "Not yet" is no "no": a cluster that was never accepted waits, one whose acceptance
/// was taken back must leave.
enum class Acceptance {
  pending,   // never accepted so far
  accepted,  // spec.hubAcceptsClient
  denied,    // was accepted once, or was refused by an administrator
};
Acceptance acceptance_of(const ocm::ManagedCluster& cluster);
/// The same of the whole object; pending for one that cannot be read.
Acceptance acceptance_of_object(const kube::Object& cluster);

/// One bootstrap kubeconfig as the selection sees it.
struct Candidate {
  std::string name;
  std::string server;
  std::string unreadable;  // why it cannot be used at all; empty: it can
  /// It failed us a moment ago, so others come first: else a hub that answers, but on which heartbeats do not arrive,
  /// would be chosen again and again.
  bool demoted = false;
};

/// What probing a candidate came to.
struct Verdict {
  bool valid = false;
  std::string reason;       // why not
  bool registered = false;  // our ManagedCluster is there
};

/// Which hub an agent goes to. Decides whom to ask next; asks nobody itself.
///
/// Stay where we are, if that hub is still valid; else the first valid one in order. Nobody is asked twice, and there
/// is no way back to a hub just because it stands further up in the list.
///
///   while (auto index = selection.next()) selection.report(*index, co_await probe(…));
class HubSelection {
 public:
  /// `current_server`: of the hub kubeconfig at hand; empty when there is none. Of two candidates with that server the
  /// first one counts.
  HubSelection(std::vector<Candidate> candidates, std::string_view current_server);

  /// The candidate to probe now; nullopt when the choice is made, or there is nobody left.
  std::optional<std::size_t> next();
  void report(std::size_t index, Verdict verdict);

  [[nodiscard]] std::optional<std::size_t> chosen() const { return chosen_; }
  /// Is our ManagedCluster at the chosen hub already?
  [[nodiscard]] bool registered() const { return registered_; }
  /// When there is no choice: a sentence that names every candidate with its reason.
  [[nodiscard]] std::string explain(std::string_view cluster) const;

 private:
  std::vector<Candidate> candidates_;
  std::vector<std::string> reasons_;  // by candidate
  std::vector<std::size_t> order_;
  std::size_t asked_ = 0;  // of order_
  std::optional<std::size_t> chosen_;
  bool registered_ = false;
};

/// What one candidate gets: a hub behind a firewall that swallows packets must not hold up the choice.
inline constexpr auto probe_timeout = std::chrono::seconds{10};

/// Would this hub take us? Asks with the bootstrap credential: the rights that registering takes, one by one, then for
/// our ManagedCluster.
async::Awaitable<Verdict> probe(kube::Api& api, std::string cluster);

}  // namespace hubferry::klusterlet
