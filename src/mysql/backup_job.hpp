#pragma once

#include <string>

#include "hubferry/kube/object.hpp"
#include "hubferry/mysql/resource.hpp"

namespace hubferry::mysql {

/// One attempt of a backup.
struct BackupJob {
  std::string name;
  std::string ns;
  std::string backup;  // also the directory in the claim
  std::string uid;     // of the MySQLBackup
  std::string cluster;
  std::string image;
  std::string root_secret;
  std::string source;  // the pod
  std::string source_address;
  std::string claim;
  std::int64_t keep = 0;
};

/// A Job without retries of its own: Kubernetes' back-off is not ours. It runs where the source runs, because
/// mariadb-backup reads the data directory itself.
json::object wanted_job(const BackupJob& job);

enum class JobOutcome { running, succeeded, failed };
/// A Job that is reported as both has failed.
JobOutcome outcome_of(const kube::Object& job);

}  // namespace hubferry::mysql
