#include "hubferry/mysql/resource.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hubferry::mysql {

const kube::Resource mysql_clusters{"mysql.hubferry.io", "v1alpha1", "mysqlclusters", "MySQLCluster", true};
const kube::Resource mysql_backups{"mysql.hubferry.io", "v1alpha1", "mysqlbackups", "MySQLBackup", true};

namespace kinds {
const kube::Resource pods{"", "v1", "pods", "Pod", true};
const kube::Resource services{"", "v1", "services", "Service", true};
const kube::Resource stateful_sets{"apps", "v1", "statefulsets", "StatefulSet", true};
const kube::Resource persistent_volume_claims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
const kube::Resource endpoint_slices{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true};
const kube::Resource jobs{"batch", "v1", "jobs", "Job", true};
}  // namespace kinds

namespace {

std::string with_suffix(std::string_view name, std::string_view suffix) {
  return std::string{name} + std::string{suffix};
}

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::int64_t integer_at(const json::object& from, std::string_view field, std::int64_t otherwise) {
  const auto* value = from.if_contains(field);
  return value != nullptr && value->is_int64() ? value->get_int64() : otherwise;
}

bool flag_at(const json::object& from, std::string_view field, bool otherwise) {
  const auto* value = from.if_contains(field);
  return value != nullptr && value->is_bool() ? value->get_bool() : otherwise;
}

std::string text_at(const json::object& from, std::initializer_list<std::string_view> path,
                    std::string otherwise = {}) {
  const auto text = kube::string_at(from, path);
  return text.empty() ? otherwise : std::string{text};
}

/// More than a few centuries cannot be counted in nanoseconds: such a number stands for "never".
constexpr async::Duration longest_time = std::chrono::years{10};

async::Duration seconds_at(const json::object& from, std::string_view field, async::Duration otherwise) {
  const auto* value = from.if_contains(field);
  if (value != nullptr && value->is_uint64()) return longest_time;
  if (value == nullptr || !value->is_int64()) return otherwise;
  constexpr std::int64_t most = std::chrono::duration_cast<std::chrono::seconds>(longest_time).count();
  return std::chrono::seconds{std::clamp<std::int64_t>(value->get_int64(), 0, most)};
}

constexpr std::string_view reference_scheme = "ref://";

bool is_version(std::string_view text) {
  const auto is_allowed = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return !text.empty() && text.front() != '.' && text.back() != '.' && text.find('.') != std::string_view::npos &&
         text.find("..") == std::string_view::npos && std::ranges::all_of(text, is_allowed);
}

}  // namespace

std::string root_secret_name(std::string_view cluster) {
  return with_suffix(cluster, "-root");
}
std::string internal_secret_name(std::string_view cluster) {
  return with_suffix(cluster, "-internal");
}
std::string config_name(std::string_view cluster) {
  return with_suffix(cluster, "-config");
}
std::string write_service_name(std::string_view cluster) {
  return with_suffix(cluster, "-mysql-write");
}
std::string read_service_name(std::string_view cluster) {
  return with_suffix(cluster, "-mysql-read");
}
std::string pod_name(std::string_view cluster, std::size_t ordinal) {
  return with_suffix(cluster, "-" + std::to_string(ordinal));
}
std::string claim_name(std::string_view cluster, std::size_t ordinal) {
  return "data-" + pod_name(cluster, ordinal);
}

std::optional<std::size_t> ordinal_of(std::string_view cluster, std::string_view pod) {
  if (!pod.starts_with(cluster) || pod.size() < cluster.size() + 2 || pod[cluster.size()] != '-') return std::nullopt;
  return parse_number(pod.substr(cluster.size() + 1));
}

ClusterSpec read_cluster_spec(const json::object& cluster) {
  ClusterSpec spec;
  const auto* value = cluster.if_contains("spec");
  if (value == nullptr || !value->is_object()) return spec;
  const auto& from = value->get_object();
  spec.replicas = static_cast<std::size_t>(std::max<std::int64_t>(0, integer_at(from, "replicas", 3)));
  spec.version = text_at(from, {"mysqlVersion"}, spec.version);
  spec.image = text_at(from, {"image"});
  spec.exporter_image = text_at(from, {"exporterImage"});
  spec.root_password = obs::Secret{text_at(from, {"rootPassword"})};
  spec.storage_class = text_at(from, {"storage", "storageClassName"});
  spec.storage_size = text_at(from, {"storage", "size"}, spec.storage_size);
  spec.service_type = text_at(from, {"serviceType"}, spec.service_type);
  spec.read_only = flag_at(from, "readOnly", false);
  spec.semi_sync = flag_at(from, "semiSync", true);
  spec.semi_sync_timeout = seconds_at(from, "semiSyncTimeoutSeconds", spec.semi_sync_timeout);
  spec.lag_limit = seconds_at(from, "maxReplicaLagSeconds", spec.lag_limit);
  spec.drain_timeout = seconds_at(from, "drainTimeoutSeconds", spec.drain_timeout);
  spec.cool_down = seconds_at(from, "failoverCoolDownSeconds", spec.cool_down);
  if (text_at(from, {"volumePolicy", "whenScaled"}) == "Retain") spec.when_scaled = VolumePolicy::keep;
  if (text_at(from, {"volumePolicy", "whenDeleted"}) == "Delete") spec.when_deleted = VolumePolicy::remove;
  spec.config = text_at(from, {"config"});
  spec.restore_claim = text_at(from, {"restoreFrom", "claimName"});
  spec.restore_path = text_at(from, {"restoreFrom", "backup"});
  spec.backup_schedule = text_at(from, {"backupSchedule", "schedule"});
  spec.backup_claim = text_at(from, {"backupSchedule", "storage", "claimName"});
  if (const auto* schedule = from.if_contains("backupSchedule"); schedule != nullptr && schedule->is_object())
    spec.backup_keep = integer_at(schedule->get_object(), "keep", spec.backup_keep);
  if (const auto* resources = from.if_contains("resources"); resources != nullptr && resources->is_object())
    spec.resources = resources->get_object();
  if (const auto* context = from.if_contains("podSecurityContext"); context != nullptr && context->is_object())
    spec.pod_security_context = context->get_object();
  return spec;
}

std::vector<SpecProblem> problems_of(const ClusterSpec& spec, std::string_view ns) {
  using Field = SpecProblem::Field;
  std::vector<SpecProblem> problems;
  if (!is_version(spec.version))
    problems.push_back({Field::version, "spec.mysqlVersion '" + spec.version + "' is not a version such as 10.11"});
  if (!parse_quantity(spec.storage_size))
    problems.push_back({Field::storage_size, "spec.storage.size '" + spec.storage_size + "' is not a quantity"});
  if (is_reference(spec.root_password) && !referenced_secret(spec.root_password, ns))
    problems.push_back({Field::root_password, "spec.rootPassword is not ref://<secret> of this namespace"});
  return problems;
}

bool is_reference(const obs::Secret& root_password) {
  return root_password.reveal().starts_with(reference_scheme);
}

std::optional<std::string> referenced_secret(const obs::Secret& root_password, std::string_view ns) {
  if (!is_reference(root_password)) return std::nullopt;
  auto name = std::string_view{root_password.reveal()}.substr(reference_scheme.size());
  if (const auto slash = name.find('/'); slash != std::string_view::npos) {
    if (name.substr(0, slash) != ns) return std::nullopt;
    name = name.substr(slash + 1);
  }
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > 253 || !std::ranges::all_of(name, is_allowed)) return std::nullopt;
  return std::string{name};
}

std::optional<double> parse_quantity(std::string_view text) {
  static constexpr std::pair<std::string_view, double> units[] = {{"Ki", 1024.0},
                                                                  {"Mi", 1048576.0},
                                                                  {"Gi", 1073741824.0},
                                                                  {"Ti", 1099511627776.0},
                                                                  {"Pi", 1125899906842624.0},
                                                                  {"k", 1e3},
                                                                  {"M", 1e6},
                                                                  {"G", 1e9},
                                                                  {"T", 1e12},
                                                                  {"P", 1e15}};
  double factor = 1;
  for (const auto& [unit, size] : units)
    if (text.ends_with(unit)) {
      factor = size;
      text.remove_suffix(unit.size());
      break;
    }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number) || number <= 0)
    return std::nullopt;
  return number * factor;
}

BackupSpec read_backup_spec(const json::object& backup) {
  BackupSpec spec;
  spec.cluster = kube::string_at(backup, {"spec", "cluster"});
  spec.source = kube::string_at(backup, {"spec", "source"});
  spec.claim = kube::string_at(backup, {"spec", "storage", "claimName"});
  if (const auto* keep = kube::find(backup, {"spec", "keep"}); keep != nullptr && keep->is_int64())
    spec.keep = keep->get_int64();
  return spec;
}

}  // namespace hubferry::mysql
