#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"
#include "hubferry/obs/secret.hpp"

/// The custom resources of the MySQL operator: their kinds and specs, and the names that users meet in them.
namespace hubferry::mysql {

namespace json = boost::json;

/// mysql.hubferry.io/v1alpha1.
extern const kube::Resource mysql_clusters;
extern const kube::Resource mysql_backups;

/// Kubernetes' own kinds that the operator creates or reads.
namespace kinds {
extern const kube::Resource pods;
extern const kube::Resource services;
extern const kube::Resource stateful_sets;
extern const kube::Resource persistent_volume_claims;
extern const kube::Resource endpoint_slices;
extern const kube::Resource jobs;
}  // namespace kinds

namespace phases {
inline constexpr const char* creating = "Creating";
inline constexpr const char* running = "Running";
inline constexpr const char* scaling = "Scaling";
inline constexpr const char* upgrading = "Upgrading";
inline constexpr const char* failed = "Failed";
// Of a backup.
inline constexpr const char* pending = "Pending";
inline constexpr const char* succeeded = "Succeeded";
}  // namespace phases

namespace conditions {
inline constexpr const char* primary_healthy = "PrimaryHealthy";
inline constexpr const char* failover_in_progress = "FailoverInProgress";
inline constexpr const char* backup_running = "BackupRunning";
inline constexpr const char* root_password_generated = "RootPasswordGenerated";
/// False while a server is not part of the replication; its message names the server and why.
inline constexpr const char* replicas_healthy = "ReplicasHealthy";
/// False while a part of the spec of a running cluster is invalid: what the servers have stays in force for it.
inline constexpr const char* spec_accepted = "SpecAccepted";
/// Of a cluster with a backup schedule: False when two scheduled times have passed since the last backup that
/// succeeded.
inline constexpr const char* backups_on_time = "BackupsOnTime";
/// False while the volume of a server is nearly full; its message names the server.
inline constexpr const char* volumes_healthy = "VolumesHealthy";
}  // namespace conditions

namespace reasons {
inline constexpr const char* heartbeat_ok = "HeartbeatOK";
inline constexpr const char* primary_unreachable = "PrimaryUnreachable";
inline constexpr const char* primary_read_only = "PrimaryReadOnly";
inline constexpr const char* no_primary = "NoPrimary";
inline constexpr const char* probe_unknown = "ProbeUnknown";
inline constexpr const char* promote_replica = "PromoteReplica";
inline constexpr const char* failover_complete = "FailoverComplete";
inline constexpr const char* failover_aborted = "FailoverAborted";
inline constexpr const char* no_failover = "NoFailover";
inline constexpr const char* job_created = "JobCreated";
inline constexpr const char* backup_finished = "BackupFinished";
inline constexpr const char* backup_failed = "BackupFailed";
inline constexpr const char* replicating = "Replicating";
inline constexpr const char* not_replicating = "NotReplicating";
inline constexpr const char* errant_transactions = "ErrantTransactions";
inline constexpr const char* password_mismatch = "PasswordMismatch";
inline constexpr const char* lagging = "Lagging";
inline constexpr const char* backup_on_time = "OnTime";
inline constexpr const char* backup_overdue = "BackupOverdue";
inline constexpr const char* schedule_invalid = "BackupScheduleInvalid";
inline constexpr const char* spec_valid = "SpecValid";
inline constexpr const char* spec_invalid = "SpecInvalid";
inline constexpr const char* change_pending = "ChangePending";
inline constexpr const char* restore_claim_missing = "RestoreClaimMissing";
inline constexpr const char* space_left = "SpaceLeft";
inline constexpr const char* volume_full = "VolumeFull";
}  // namespace reasons

namespace names {
inline constexpr const char* cluster_label = "mysql.hubferry.io/cluster";
/// On a Failed cluster: try again. Removed when it was read.
inline constexpr const char* reconcile_annotation = "mysql.hubferry.io/reconcile";
/// The name of the pod that shall become the primary, or "any". Removed when it was read.
inline constexpr const char* switchover_annotation = "mysql.hubferry.io/switchover";
/// Names of replicas, with commas between them: a failover neither waits for them nor for what only they have received.
/// Removed when it was read.
inline constexpr const char* give_up_annotation = "mysql.hubferry.io/give-up";
inline constexpr const char* version_annotation = "mysql.hubferry.io/version";
inline constexpr const char* content_annotation = "mysql.hubferry.io/content-hash";
inline constexpr const char* password_key = "password";
/// Beside it while the root password is changed: the new one, or the new one that the spec does not want any more.
inline constexpr const char* pending_password_key = "pendingPassword";
inline constexpr const char* revoked_password_key = "revokedPassword";
inline constexpr const char* change_position_key = "changePosition";
inline constexpr const char* replication_user = "hubferry-replication";
inline constexpr const char* exporter_user = "hubferry-exporter";
}  // namespace names

inline constexpr std::uint16_t mysql_port = 3306;
inline constexpr std::uint16_t exporter_port = 9104;

std::string root_secret_name(std::string_view cluster);      // <cluster>-root
std::string internal_secret_name(std::string_view cluster);  // <cluster>-internal: users of the operator itself
std::string config_name(std::string_view cluster);           // <cluster>-config
std::string write_service_name(std::string_view cluster);    // <cluster>-mysql-write
std::string read_service_name(std::string_view cluster);     // <cluster>-mysql-read
std::string pod_name(std::string_view cluster, std::size_t ordinal);
std::string claim_name(std::string_view cluster, std::size_t ordinal);  // data-<pod>
/// The number at the end of a pod's name; nullopt for a name that is not <cluster>-<number>.
std::optional<std::size_t> ordinal_of(std::string_view cluster, std::string_view pod);

enum class VolumePolicy { keep, remove };

/// What a user wants of a cluster. Missing fields have their defaults.
struct ClusterSpec {
  std::size_t replicas = 3;
  std::string version = "10.11";
  std::string image;           // empty: mariadb:<version>
  std::string exporter_image;  // empty: the operator's default
  obs::Secret root_password;   // empty, plain text, or ref://secret
  std::string storage_class;   // empty: the cluster's default
  std::string storage_size = "10Gi";
  std::string service_type = "NodePort";
  bool read_only = false;
  bool semi_sync = true;
  async::Duration semi_sync_timeout = std::chrono::hours{1};
  async::Duration lag_limit = std::chrono::seconds{30};
  async::Duration drain_timeout = std::chrono::seconds{60};
  async::Duration cool_down = std::chrono::minutes{5};
  VolumePolicy when_scaled = VolumePolicy::remove;
  VolumePolicy when_deleted = VolumePolicy::keep;
  std::string config;         // lines for the [mariadbd] section
  std::string restore_claim;  // restoreFrom: a PersistentVolumeClaim with a backup
  std::string restore_path;
  std::string backup_schedule;  // a cron expression; empty: no schedule
  std::string backup_claim;
  std::int64_t backup_keep = 7;
  json::object resources;  // of the mysql container
  /// Of the pods. By default the group that the image's server runs as, so that it can write to its volume.
  json::object pod_security_context{{"fsGroup", 999}};
};

ClusterSpec read_cluster_spec(const json::object& cluster);

/// A field that can never work as it is.
struct SpecProblem {
  enum class Field { version, storage_size, root_password };
  Field field;
  std::string text;
};
/// The CRD refuses most of it, but may be older than this binary.
std::vector<SpecProblem> problems_of(const ClusterSpec& spec, std::string_view ns);

/// "ref://name" or "ref://namespace/name" -> name. Absent for anything else, also for another namespace: the operator
/// may read Secrets that the author of this cluster may not.
std::optional<std::string> referenced_secret(const obs::Secret& root_password, std::string_view ns);
bool is_reference(const obs::Secret& root_password);

/// "10Gi", "500M" -> bytes; nullopt for what is no quantity.
std::optional<double> parse_quantity(std::string_view text);

struct BackupSpec {
  std::string cluster;
  std::string source;     // a pod's name; empty: the operator chooses
  std::string claim;      // the PersistentVolumeClaim that keeps it
  std::int64_t keep = 0;  // then only this many of the cluster's scheduled backups are kept there; 0: all
};

BackupSpec read_backup_spec(const json::object& backup);

}  // namespace hubferry::mysql
