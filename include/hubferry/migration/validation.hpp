#pragma once

#include "hubferry/hubs/hubs.hpp"
#include "hubferry/migration/operation_error.hpp"
#include "hubferry/migration/resource.hpp"

/// The rules by which the controller accepts a migration, and the reasons that it gives. `hubferry plan` uses the same.
namespace hubferry::migration {

/// Why a migration cannot succeed.
struct Problem {
  std::string hub;      // empty: it is the spec itself, or concerns both
  std::string cluster;  // empty: it concerns all clusters
  std::string reason;   // as in the condition ResourceValidated
  std::string message;
};

/// How validation reads from the hubs. The controller's implementation retries until the phase's deadline; `plan` reads
/// once. An implementation for a migration that does not exist yet validates with a MigrationRef that owns nothing.
class ValidationReads {
 public:
  virtual ~ValidationReads() = default;

  virtual async::Awaitable<OperationResult<hubs::HubInfo>> find_hub(std::string hub) = 0;
  /// On the source.
  virtual async::Awaitable<OperationResult<hubagent::ClusterNames>> resolve_placement(std::string placement) = 0;
  virtual async::Awaitable<OperationResult<hubagent::Outcome>> validate_on_source(hubagent::ClusterNames clusters) = 0;
  virtual async::Awaitable<OperationResult<hubagent::Outcome>> validate_on_target(hubagent::ClusterNames clusters) = 0;
  /// The KlusterletConfigs that the clusters refer to on the source are on the target.
  virtual async::Awaitable<OperationResult<hubagent::Outcome>> check_klusterlet_configs(
      hubagent::ClusterNames clusters) = 0;
};

/// The rules, in the order in which the controller's steps apply them. Each returns all problems that it finds; none:
/// the migration may continue. Lifetime: the arguments outlive the call. Cancellation: terminal.

/// Everything that is wrong with the spec itself.
std::vector<Problem> check_spec(const MigrationSpec& spec);

/// The hub exists, is a hub and is Available.
async::Awaitable<std::vector<Problem>> check_hub(ValidationReads& reads, std::string hub);

/// Which clusters: those of the list, or those that the placement selects.
struct SelectedClusters {
  hubagent::ClusterNames clusters;  // sorted, without duplicates
  std::optional<Problem> problem;   // they are not known, or there is none
};
async::Awaitable<SelectedClusters> select_clusters(ValidationReads& reads, const MigrationSpec& spec);

/// Every name can be that of a cluster. A ledger does not list others, so that they would silently stay behind.
std::vector<Problem> check_names(const MigrationSpec& spec, const hubagent::ClusterNames& clusters);

/// Every cluster can leave the source.
async::Awaitable<std::vector<Problem>> check_on_source(ValidationReads& reads, const MigrationSpec& spec,
                                                       hubagent::ClusterNames clusters);
/// No cluster, and nothing that it brings, is on the target already.
async::Awaitable<std::vector<Problem>> check_on_target(ValidationReads& reads, const MigrationSpec& spec,
                                                       hubagent::ClusterNames clusters);

/// The target has the KlusterletConfigs of all clusters: without theirs, they would lose their settings.
async::Awaitable<std::vector<Problem>> check_klusterlet_configs(ValidationReads& reads, const MigrationSpec& spec,
                                                                hubagent::ClusterNames clusters);

/// All of it at once, for `plan`: a problem of one hub does not hide those of the other.
struct Validation {
  hubagent::ClusterNames clusters;
  std::vector<Problem> problems;
};
async::Awaitable<Validation> validate(ValidationReads& reads, MigrationSpec spec);

/// The messages, one after the other.
std::string joined(const std::vector<Problem>& problems);

}  // namespace hubferry::migration
