#pragma once

#include <map>
#include <memory>
#include <string>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::mysql::test {

using async::Awaitable;

/// Stands in for the kubelet: runs the pods of MySQL clusters as mariadbd and mysqld_exporter processes, each pod on a
/// loopback address of its own with the usual ports, and reports address and readiness in the pod's status. Volumes are
/// directories that outlive pods. Configuration and passwords come from the ConfigMap and Secrets, as in a container.
/// Jobs run too: their script, with the paths of the volumes in it.
class PodRunner {
 public:
  PodRunner(kube::Api& api, kube::Env env);

  Awaitable<> run();

  /// The server process of a pod; 0: it does not run.
  [[nodiscard]] pid_t server_of(const std::string& pod) const;
  void signal_server(const std::string& pod, int number);
  void signal_exporter(const std::string& pod, int number);
  /// kill -9 of the server, which a kubelet would start again after a while.
  void kill_server(const std::string& pod) { signal_server(pod, SIGKILL); }
  Awaitable<> restart_server(std::string pod);
  [[nodiscard]] std::string address_of(const std::string& pod) const;
  /// The last lines of a server's log, for failed tests.
  [[nodiscard]] std::string log_of(const std::string& pod) const;
  /// The directory that stands for a PersistentVolumeClaim that is no pod's own.
  [[nodiscard]] std::string claim_directory(const std::string& claim) const {
    return directory_.file("claim-" + claim);
  }

 private:
  struct Pod {
    std::string uid;
    std::string address;
    std::unique_ptr<hubferry::test::Process> server;
    std::unique_ptr<hubferry::test::Process> exporter;
  };

  Awaitable<> start(kube::Object pod);
  Awaitable<> start_server(kube::Object object, Pod& pod);
  void start_exporter(Pod& pod, const std::string& password);
  Awaitable<std::string> secret(std::string name, std::string key);
  Awaitable<> run_job(kube::Object job);
  Awaitable<int> run_script(std::string script, std::string data, std::string claim,
                            std::vector<std::string> environment);
  Awaitable<> report_ready(kube::Object pod, std::string address);
  std::string directory_of(const std::string& pod) const;

  kube::Api& api_;
  kube::Env env_;
  kube::Cache<kube::Object> pods_;
  kube::Cache<kube::Object> jobs_;
  hubferry::test::TemporaryDirectory directory_;
  std::map<std::string, Pod> running_;
  std::string network_;  // "127.x.y."
  unsigned addresses_ = 0;
};

}  // namespace hubferry::mysql::test
