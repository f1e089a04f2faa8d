#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../migration/snapshot.hpp"
#include "credentials.hpp"
#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::worlds {

/// The users of managers begin with this: what they write is held against the rules.
inline constexpr const char* manager_user = "hubferry:";
/// The user of people who act in a world: what they do to a cluster is no manager's fault.
inline constexpr const char* person_user = "person";

/// What must hold in every world, whatever happens to it. Checked after every write to any server:
///
/// - `nowhere`: each cluster is accepted by a hub. There is no moment without one: the target accepts before the source
///   detaches, and the source accepts again before the target denies.
/// - `twice`: at most one hub accepts it; two, the source and the target, only while its migration is in Deploying,
///   Registering or Rollbacking.
/// - `foreign`: a manager creates nothing without the migration's label, and changes or deletes nothing without it, but
///   for what it must touch on the source: the clusters of its migrations and what pauses there; and on the target it
///   may label a ManagedCluster of its migration that the cluster's agent, and nobody else, created.
/// - `unready`: a manager detaches a cluster only when the target has accepted it in its status too.
/// - `back`: the source drops the claim on a cluster that it had detached only when the cluster's agent has renewed its
///   lease there since it is accepted again.
/// - `secret`: no manager writes a token or a kubeconfig into anything but a Secret.
///
/// And at the end, when all faults are over (check_end()):
///
/// - `unended`: each migration is Completed or Failed.
/// - `lost`: each cluster is on exactly one hub, accepted and Available there, its agent has joined that hub, and it is
/// the
///   hub that the ledger of its last migration names.
/// - `left`: no label or annotation of ours is on any hub, and nothing else is there that was not there before.
/// - `content`: what belongs to a cluster is on its hub as it was before, with the label that a person gave it
/// meanwhile.
class Invariants {
 public:
  /// Lifetime: the world outlives it, and is written to by nobody while this is made. `clusters`: on which hub each is.
  Invariants(sim::VirtualWorld& world, std::map<std::string, std::string> clusters);
  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  /// A person interferes with this cluster, where the manager can do nothing about it: only its end is checked.
  void excuse(const std::string& cluster) { excused_.insert(cluster); }

  /// The clusters of a migration that is to come; it may name a Placement instead.
  void announce(const std::string& migration, std::set<std::string> clusters) {
    announced_[migration] = std::move(clusters);
  }

  void check_end();
  /// One per line, the first ones of each kind; empty: none.
  [[nodiscard]] const std::string& violations() const { return violations_; }

  /// All migrations that there are have ended.
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] std::string phase_of(const std::string& migration) const;
  /// Called for each phase that a migration enters.
  std::function<void(const std::string& migration, const std::string& phase)> on_phase;
  /// Differs if anything was written differently.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }
  [[nodiscard]] std::size_t writes() const { return writes_; }
  /// How many clusters registered by themselves, without a copy there.
  [[nodiscard]] std::size_t self_registered() const { return self_registered_.size(); }

 private:
  struct Migration {
    std::string name;
    std::string from;
    std::string to;
    std::set<std::string> clusters;
    std::string phase;
    bool exists = true;
    bool settled = false;  // its result counts already
  };

  /// By "kind namespace/name". Their texts are made only where they are compared: most never change.
  using Objects = std::map<std::string, kube::Object>;

  void see(const std::string& server, const sim::ObservedWrite& write);
  void see_cluster(const std::string& hub, const sim::ObservedWrite& write);
  void see_lease(const std::string& hub, const sim::ObservedWrite& write);
  void check_detaching(const std::string& hub, const kube::Object& cluster);
  void check_return(const std::string& hub, const sim::ObservedWrite& write);
  void see_migration(const sim::ObservedWrite& write);
  void see_ledger(const sim::ObservedWrite& write);
  void see_secret(const kube::Object& secret);
  void check_cluster(const std::string& cluster);
  void check_ownership(const std::string& server, const sim::ObservedWrite& write);
  void check_secrecy(const std::string& server, const sim::ObservedWrite& write);
  /// A manager labels a ManagedCluster of its migration that the cluster's agent created on the target.
  [[nodiscard]] bool is_adoption(const std::string& server, const sim::ObservedWrite& write) const;
  /// The hub of each of its clusters is known now.
  void settle(Migration& migration);
  void check_place(const std::string& cluster);
  void check_leftovers(const std::string& server);
  void check_content();
  [[nodiscard]] Objects snapshot(const std::string& server);
  /// A migration that has not ended moves the cluster away from there.
  [[nodiscard]] bool is_source(const std::string& server, const std::string& cluster) const;
  void violation(const std::string& kind, const std::string& text);
  void remember(std::string_view text);

  sim::VirtualWorld& world_;
  std::vector<std::string> hubs_;
  std::map<std::string, std::vector<kube::Resource>> kinds_;  // by server
  std::map<std::string, Objects> before_;                     // by server
  std::map<std::string, std::string> place_;                  // by cluster: the hub that has to have it
  std::map<std::string, std::string> first_place_;
  std::set<std::string> moved_;  // by a migration, at least once; it may be back where it was
  std::map<std::string, std::set<std::string>> accepting_;  // by cluster: hubs
  /// A cluster that a manager detached from its source, by both names.
  struct Detached {
    bool accepted_again = false;
    bool renewed = false;  // its lease, since then
  };
  std::map<std::pair<std::string, std::string>, Detached> detached_;  // by hub and cluster
  std::map<std::string, Migration> migrations_;                       // by uid
  std::map<std::string, std::set<std::string>> arrived_;              // by migration's name: `success` of its ledger
  std::map<std::string, std::set<std::string>> announced_;            // by migration's name: its clusters
  Credentials credentials_;
  std::set<std::string> excused_;
  std::set<std::string> self_registered_;  // uids of ManagedClusters that an agent created
  std::set<std::string> edited_;           // by people, who gave them a label
  std::map<std::string, int> counts_;      // of violations, by kind
  std::string violations_;
  std::uint64_t fingerprint_ = 1469598103934665603U;
  std::size_t writes_ = 0;
};

}  // namespace hubferry::worlds
