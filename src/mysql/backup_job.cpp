#include "mysql/backup_job.hpp"

#include "hubferry/kube/conditions.hpp"

namespace hubferry::mysql {

namespace {

// A directory that a failed attempt left is replaced; only a prepared backup gets the final name.
constexpr const char* backup_script =
    "set -eu\n"
    "umask 077\n"
    "part=\"/backup/$BACKUP.part\"\n"
    // What only an earlier attempt can have left is replaced; a backup whose MySQLBackup was deleted is somebody's.
    "uid=\"/backup/$BACKUP.uid\"\n"
    "if [ -e \"/backup/$BACKUP\" ] && [ \"$(cat \"$uid\" 2>&1)\" != \"$BACKUP_UID\" ]; then\n"
    "  echo \"the claim has a backup named $BACKUP of another MySQLBackup: delete it, or use another name\" >&2\n"
    "  exit 1\n"
    "fi\n"
    "rm -rf \"$part\"\n"
    "mariadb-backup --backup --user=root --host=\"$SOURCE\" --port=3306 --protocol=tcp "
    "--datadir=/var/lib/mysql --target-dir=\"$part\"\n"
    "mariadb-backup --prepare --target-dir=\"$part\"\n"
    "rm -rf \"/backup/$BACKUP\"\n"
    "echo \"$BACKUP_UID\" >\"$uid\"\n"
    "mv \"$part\" \"/backup/$BACKUP\"\n"
    // Those of the schedule have twelve digits at the end of their names, which sort by time.
    "[ \"$KEEP\" -gt 0 ] || exit 0\n"
    "digits=[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]\n"
    "ls -d /backup/\"$CLUSTER\"-$digits | sort | head -n \"-$KEEP\" | while read -r old; do rm -rf \"$old\" "
    "\"$old.uid\"; done\n";

json::object variable(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

json::object claim_volume(const char* name, const std::string& claim) {
  return {{"name", name}, {"persistentVolumeClaim", json::object{{"claimName", claim}}}};
}

}  // namespace

json::object wanted_job(const BackupJob& job) {
  json::object labels{{names::cluster_label, job.cluster}, {"mysql.hubferry.io/backup", job.backup}};
  // Read by the client library as it is: in an option file, or on a command line, it would have to be quoted.
  json::object password{
      {"name", "MYSQL_PWD"},
      {"valueFrom",
       json::object{{"secretKeyRef", json::object{{"name", job.root_secret}, {"key", names::password_key}}}}}};
  json::object container{
      {"name", "backup"},
      {"image", job.image},
      {"command", json::array{"sh", "-c", backup_script}},
      {"env", json::array{std::move(password), variable("SOURCE", job.source_address), variable("BACKUP", job.backup),
                          variable("BACKUP_UID", job.uid), variable("CLUSTER", job.cluster),
                          variable("KEEP", std::to_string(job.keep))}},
      // What mariadb-backup said last is in the pod's status then, and from there in ours.
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"volumeMounts", json::array{json::object{{"name", "data"}, {"mountPath", "/var/lib/mysql"}, {"readOnly", true}},
                                   json::object{{"name", "backup"}, {"mountPath", "/backup"}}}}};
  json::object same_node{
      {"labelSelector",
       json::object{{"matchLabels", json::object{{"statefulset.kubernetes.io/pod-name", job.source}}}}},
      {"topologyKey", "kubernetes.io/hostname"}};
  json::object affinity{{"podAffinity", json::object{{"requiredDuringSchedulingIgnoredDuringExecution",
                                                      json::array{std::move(same_node)}}}}};
  json::object pod{
      {"restartPolicy", "Never"},
      {"affinity", std::move(affinity)},
      {"containers", json::array{std::move(container)}},
      {"volumes", json::array{claim_volume("data", "data-" + job.source), claim_volume("backup", job.claim)}}};
  // Not the label of the cluster's own pods: this is none of its servers.
  json::object pod_labels{{"mysql.hubferry.io/backup", job.backup}};
  return {{"metadata", json::object{{"name", job.name}, {"namespace", job.ns}, {"labels", std::move(labels)}}},
          {"spec", json::object{{"backoffLimit", 0},
                                {"template", json::object{{"metadata", json::object{{"labels", std::move(pod_labels)}}},
                                                          {"spec", std::move(pod)}}}}}};
}

JobOutcome outcome_of(const kube::Object& job) {
  if (kube::is_condition_true(job, "Failed")) return JobOutcome::failed;
  if (kube::is_condition_true(job, "Complete")) return JobOutcome::succeeded;
  return JobOutcome::running;
}

}  // namespace hubferry::mysql
