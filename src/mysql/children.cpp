#include "mysql/children.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <stdexcept>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/edit.hpp"

namespace hubferry::mysql {

namespace {

constexpr const char* service_name_label = "kubernetes.io/service-name";
constexpr const char* root_password_variable = "MYSQL_ROOT_PASSWORD";
constexpr const char* slice_manager_label = "endpointslice.kubernetes.io/managed-by";

json::object metadata_of(const Owner& owner, const std::string& name) {
  return {{"name", name}, {"namespace", owner.ns}, {"labels", labels_of(owner)}};
}

json::object selector_of(const Owner& owner) {
  return {{names::cluster_label, owner.name}};
}

json::array mysql_ports() {
  return {json::object{{"name", "mysql"}, {"port", mysql_port}, {"protocol", "TCP"}}};
}

// Not for the user to change, so they come after his lines again: of several values a server takes the last. With
// others a server would start writable, or lack what the next primary needs.
constexpr const char* settings_of_the_operator =
    "log_bin=binlog\n"
    "log_slave_updates=ON\n"
    "gtid_strict_mode=ON\n"
    "read_only=ON\n"
    "skip_slave_start=ON\n"
    "loose_init_rpl_role=SLAVE\n"
    "rpl_semi_sync_master_wait_point=AFTER_SYNC\n";

std::string server_config(const ClusterSpec& spec) {
  std::string text =
      "[mariadbd]\n"
      "log_bin=binlog\n"
      "log_slave_updates=ON\n"
      "binlog_format=ROW\n"
      "sync_binlog=1\n"
      "innodb_flush_log_at_trx_commit=1\n"
      "gtid_strict_mode=ON\n"
      // Only the operator makes a server writable or a replica: one that comes back from a crash does no harm.
      "read_only=ON\n"
      "skip_slave_start=ON\n"
      // A primary that hangs is noticed by its replicas before the operator asks them.
      "slave_net_timeout=10\n"
      "relay_log_recovery=ON\n"
      "skip_name_resolve=ON\n"
      "relay_log=relay\n"
      // A server that crashed as a primary drops the transactions that no replica has acknowledged; no client got an
      // answer for them. So it can come back as a replica. The primary's side is switched on with its writability.
      "rpl_semi_sync_slave_enabled=ON\n"
      "loose_init_rpl_role=SLAVE\n"
      "rpl_semi_sync_master_wait_point=AFTER_SYNC\n"
      // information_schema.DISKS: how much of the volume is left.
      "plugin_load_add=disks\n";
  if (!spec.config.empty()) text += spec.config + "\n[mariadbd]\n" + settings_of_the_operator;
  return text;
}

constexpr const char* start_script =
    "#!/bin/sh\n"
    "# Starts the server of this pod: its number makes its server_id.\n"
    "set -eu\n"
    "ordinal=${HOSTNAME##*-}\n"
    "set -- --server-id=$((100 + ordinal)) --report-host=\"$HOSTNAME\"\n"
    "# The position of a restored backup. It stays there, as this start may fail: the file itself says when it "
    "counts.\n"
    "restored=/var/lib/mysql/hubferry-restored.sql\n"
    "[ ! -f \"$restored\" ] || set -- \"$@\" --init-file=\"$restored\"\n"
    "exec docker-entrypoint.sh mariadbd \"$@\"\n";

constexpr const char* restore_script =
    "#!/bin/sh\n"
    "# Copies a prepared backup into an empty data directory, and leaves its GTID position for the first start. If "
    "that\n"
    "# was interrupted it begins again: a server must not start with half of a backup.\n"
    "set -eu\n"
    "unfinished=/var/lib/mysql/hubferry-restoring\n"
    "if [ -e \"$unfinished\" ]; then\n"
    "  # lost+found is root's: the server's user may not even look into it.\n"
    "  find /var/lib/mysql -mindepth 1 -maxdepth 1 ! -name hubferry-restoring ! -name lost+found -exec rm -rf {} +\n"
    "elif [ -n \"$(ls -A /var/lib/mysql | grep -v '^lost+found$')\" ]; then\n"
    "  exit 0\n"
    "fi\n"
    "touch \"$unfinished\"\n"
    "mariadb-backup --copy-back --force-non-empty-directories --target-dir=\"/backup/$BACKUP\" "
    "--datadir=/var/lib/mysql\n"
    "info=/backup/$BACKUP/xtrabackup_binlog_info\n"
    "if [ -f \"$info\" ]; then\n"
    "  gtid=$(awk '{print $3}' \"$info\")\n"
    "  # Until the server has written or replicated something: repeating it changes nothing then.\n"
    "  echo \"EXECUTE IMMEDIATE IF(@@global.gtid_binlog_pos = '', 'SET GLOBAL gtid_slave_pos=''$gtid''', 'DO 0');\" "
    ">/var/lib/mysql/hubferry-restored.sql\n"
    "fi\n"
    "[ \"$(id -u)\" -ne 0 ] || chown -R mysql:mysql /var/lib/mysql\n"
    "sync\n"
    "rm \"$unfinished\"\n";

json::object secret_variable(const std::string& name, const std::string& secret, const std::string& key) {
  return {{"name", name}, {"valueFrom", json::object{{"secretKeyRef", json::object{{"name", secret}, {"key", key}}}}}};
}

json::object mount(const std::string& name, const std::string& path, const std::string& sub_path = {}) {
  json::object made{{"name", name}, {"mountPath", path}};
  if (!sub_path.empty()) made["subPath"] = sub_path;
  return made;
}

json::object exec_probe(json::array command, int period, int timeout, int failures) {
  return {{"exec", json::object{{"command", std::move(command)}}},
          {"periodSeconds", period},
          {"timeoutSeconds", timeout},
          {"failureThreshold", failures}};
}

json::object mysql_container(const ClusterSpec& spec, const StatefulSetInputs& inputs) {
  json::object container{
      {"name", "mysql"},
      {"image", image_of(spec)},
      {"command", json::array{"sh", "/etc/hubferry/start.sh"}},
      {"env", json::array{secret_variable(root_password_variable, inputs.root_secret, names::password_key)}},
      {"ports", json::array{json::object{{"name", "mysql"}, {"containerPort", mysql_port}, {"protocol", "TCP"}}}},
      {"volumeMounts", json::array{mount("data", "/var/lib/mysql"), mount("config", "/etc/hubferry"),
                                   mount("config", "/etc/mysql/conf.d/hubferry.cnf", "hubferry.cnf"),
                                   mount("root-password", "/etc/mysql/secret")}},
      // Crash recovery of a large server takes long: it has an hour before its liveness counts.
      {"startupProbe", exec_probe(json::array{"healthcheck.sh", "--connect"}, 5, 5, 720)},
      {"livenessProbe", exec_probe(json::array{"healthcheck.sh", "--connect"}, 10, 5, 6)},
      {"readinessProbe", exec_probe(json::array{"healthcheck.sh", "--connect", "--innodb_initialized"}, 5, 5, 3)}};
  if (!spec.resources.empty()) container["resources"] = spec.resources;
  return container;
}

json::object exporter_container(const Owner& owner, const StatefulSetInputs& inputs) {
  const std::string source = std::string{names::exporter_user} + ":$(EXPORTER_PASSWORD)@(127.0.0.1:3306)/";
  // 0.15 and later no longer read DATA_SOURCE_NAME.
  return {
      {"name", "exporter"},
      {"image", inputs.exporter_image},
      {"args",
       json::array{"--mysqld.address=127.0.0.1:3306", std::string{"--mysqld.username="} + names::exporter_user}},
      {"env", json::array{secret_variable("EXPORTER_PASSWORD", internal_secret_name(owner.name), "exporter"),
                          secret_variable("MYSQLD_EXPORTER_PASSWORD", internal_secret_name(owner.name), "exporter"),
                          json::object{{"name", "DATA_SOURCE_NAME"}, {"value", source}}}},
      {"ports", json::array{json::object{{"name", "metrics"}, {"containerPort", exporter_port}, {"protocol", "TCP"}}}}};
}

json::object restore_container(const ClusterSpec& spec) {
  return {{"name", "restore"},
          {"image", image_of(spec)},
          {"command", json::array{"sh", "/etc/hubferry/restore.sh"}},
          {"env", json::array{json::object{{"name", "BACKUP"}, {"value", spec.restore_path}}}},
          {"volumeMounts",
           json::array{mount("data", "/var/lib/mysql"), mount("config", "/etc/hubferry"), mount("backup", "/backup")}}};
}

json::object claim_template(const ClusterSpec& spec) {
  json::object claim{{"accessModes", json::array{"ReadWriteOnce"}},
                     {"resources", json::object{{"requests", json::object{{"storage", spec.storage_size}}}}}};
  if (!spec.storage_class.empty()) claim["storageClassName"] = spec.storage_class;
  return {{"metadata", json::object{{"name", "data"}}}, {"spec", std::move(claim)}};
}

json::object pod_spec(const Owner& owner, const ClusterSpec& spec, const StatefulSetInputs& inputs) {
  json::array volumes{
      json::object{{"name", "config"}, {"configMap", json::object{{"name", config_name(owner.name)}}}},
      json::object{
          {"name", "root-password"},
          {"projected", json::object{{"sources", json::array{json::object{
                                                     {"secret", json::object{{"name", inputs.root_secret}}}}}}}}}};
  json::object pod{{"containers", json::array{mysql_container(spec, inputs), exporter_container(owner, inputs)}},
                   {"terminationGracePeriodSeconds", 60},
                   {"securityContext", spec.pod_security_context}};
  if (!spec.restore_claim.empty()) {
    volumes.push_back(
        json::object{{"name", "backup"},
                     {"persistentVolumeClaim", json::object{{"claimName", spec.restore_claim}, {"readOnly", true}}}});
    pod["initContainers"] = json::array{restore_container(spec)};
  }
  pod["volumes"] = std::move(volumes);
  return pod;
}

}  // namespace

json::object labels_of(const Owner& owner) {
  return {{names::cluster_label, owner.name}, {"app.kubernetes.io/managed-by", "hubferry"}};
}

json::object wanted_secret(const Owner& owner, const std::string& name,
                           const std::vector<std::pair<std::string, obs::Secret>>& data) {
  json::object encoded;
  for (const auto& [key, secret] : data) encoded[key] = kube::encode_base64(secret.reveal());
  return {{"metadata", metadata_of(owner, name)}, {"type", "Opaque"}, {"data", std::move(encoded)}};
}

json::object wanted_config(const Owner& owner, const ClusterSpec& spec) {
  return {
      {"metadata", metadata_of(owner, config_name(owner.name))},
      {"data", json::object{
                   {"hubferry.cnf", server_config(spec)}, {"start.sh", start_script}, {"restore.sh", restore_script}}}};
}

json::object wanted_headless_service(const Owner& owner) {
  return {{"metadata", metadata_of(owner, owner.name)},
          {"spec", json::object{{"clusterIP", "None"},
                                // The operator configures servers before they are ready.
                                {"publishNotReadyAddresses", true},
                                {"selector", selector_of(owner)},
                                {"ports", mysql_ports()}}}};
}

json::object wanted_service(const Owner& owner, const std::string& name, const ClusterSpec& spec) {
  return {{"metadata", metadata_of(owner, name)},
          {"spec", json::object{{"type", spec.service_type}, {"ports", mysql_ports()}}}};
}

json::object wanted_endpoints(const Owner& owner, const std::string& service, const std::vector<Endpoint>& endpoints) {
  json::array list;
  bool is_v6 = false;
  for (const auto& endpoint : endpoints) {
    is_v6 = endpoint.address.find(':') != std::string::npos;
    list.push_back(json::object{
        {"addresses", json::array{endpoint.address}},
        {"conditions", json::object{{"ready", true}}},
        {"targetRef",
         json::object{{"kind", "Pod"}, {"namespace", owner.ns}, {"name", endpoint.pod}, {"uid", endpoint.pod_uid}}}});
  }
  auto metadata = metadata_of(owner, service);
  metadata["labels"].as_object()[service_name_label] = service;
  metadata["labels"].as_object()[slice_manager_label] = "mysql.hubferry.io";
  return {{"metadata", std::move(metadata)},
          {"addressType", is_v6 ? "IPv6" : "IPv4"},
          {"endpoints", std::move(list)},
          {"ports", mysql_ports()}};
}

std::string image_of(const ClusterSpec& spec) {
  return spec.image.empty() ? "mariadb:" + spec.version : spec.image;
}

std::string image_of(const json::value* containers) {
  if (containers == nullptr || !containers->is_array()) return {};
  for (const auto& container : containers->get_array())
    if (container.is_object() && kube::string_at(container.get_object(), {"name"}) == "mysql")
      return std::string{kube::string_at(container.get_object(), {"image"})};
  return {};
}

std::string root_secret_of(const kube::Object& set) {
  return root_secret_of(set.find({"spec", "template", "spec", "containers"}));
}

std::string root_secret_of(const json::value* containers) {
  if (containers == nullptr || !containers->is_array()) return {};
  for (const auto& container : containers->get_array()) {
    const auto* variables = kube::find(container, {"env"});
    if (variables == nullptr || !variables->is_array()) continue;
    for (const auto& variable : variables->get_array())
      if (variable.is_object() && kube::string_at(variable.get_object(), {"name"}) == root_password_variable)
        return std::string{kube::string_at(variable.get_object(), {"valueFrom", "secretKeyRef", "name"})};
  }
  return {};
}

std::string storage_of(const kube::Object& set) {
  const auto* templates = set.find({"spec", "volumeClaimTemplates"});
  if (templates == nullptr || !templates->is_array() || templates->get_array().empty()) return {};
  const auto* size = kube::find(templates->get_array().front(), {"spec", "resources", "requests", "storage"});
  return size != nullptr && size->is_string() ? std::string{size->get_string()} : std::string{};
}

std::size_t replicas_of(const kube::Object& set) {
  const auto* value = set.find({"spec", "replicas"});
  return value != nullptr && value->is_number() ? value->to_number<std::size_t>() : 1;
}

json::object wanted_stateful_set(const Owner& owner, const ClusterSpec& spec, const StatefulSetInputs& inputs) {
  json::object annotations{{names::version_annotation, spec.version}, {names::content_annotation, inputs.content_hash}};
  json::object pod_metadata{{"labels", labels_of(owner)}, {"annotations", std::move(annotations)}};
  json::object policy{{"whenDeleted", spec.when_deleted == VolumePolicy::remove ? "Delete" : "Retain"},
                      {"whenScaled", "Retain"}};
  return {
      {"metadata", metadata_of(owner, owner.name)},
      {"spec", json::object{{"replicas", spec.replicas},
                            {"serviceName", owner.name},
                            {"podManagementPolicy", "Parallel"},
                            // Which pod is restarted when is decided by roles: the primary last, after a switchover.
                            {"updateStrategy", json::object{{"type", "OnDelete"}}},
                            {"persistentVolumeClaimRetentionPolicy", std::move(policy)},
                            {"selector", json::object{{"matchLabels", selector_of(owner)}}},
                            {"template", json::object{{"metadata", std::move(pod_metadata)},
                                                      {"spec", pod_spec(owner, spec, inputs)}}},
                            {"volumeClaimTemplates", json::array{claim_template(spec)}}}}};
}

std::string content_hash(const obs::Secret& key, const ClusterSpec& spec, const obs::Secret& root_password) {
  const auto text = server_config(spec) + start_script + '\0' + root_password.reveal();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  HMAC(EVP_sha256(), key.reveal().data(), static_cast<int>(key.reveal().size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &length);
  constexpr char digits[] = "0123456789abcdef";
  std::string hash;
  for (unsigned at = 0; at < 16; ++at) {
    hash += digits[digest[at] >> 4];
    hash += digits[digest[at] & 15];
  }
  return hash;
}

bool overlay(json::object& object, const json::object& wanted) {
  bool changed = false;
  for (const auto& field : wanted) {
    auto& present = object[field.key()];
    if (kube::contains_fields(present, field.value())) continue;
    if (present.is_object() && field.value().is_object()) {
      changed = overlay(present.get_object(), field.value().get_object()) || changed;
    } else {
      present = field.value();
      changed = true;
    }
  }
  return changed;
}

obs::Secret generate_password(std::size_t length) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  // The largest multiple of the alphabet's size: a byte above would favour its first characters.
  constexpr unsigned fair = 256 / alphabet.size() * alphabet.size();
  std::string text;
  while (text.size() < length) {
    unsigned char byte = 0;
    if (getrandom(&byte, 1, 0) != 1) throw std::runtime_error("no random bytes from the operating system");
    if (byte < fair) text += alphabet[byte % alphabet.size()];
  }
  return obs::Secret{std::move(text)};
}

}  // namespace hubferry::mysql
