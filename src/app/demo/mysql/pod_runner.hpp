#pragma once

#include <signal.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "app/cli/files.hpp"
#include "app/demo/mysql/child_process.hpp"
#include "app/demo/mysql/pod_proxy.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"

namespace hubferry::app {

/// Fills `directory` with what a new server finds in an empty volume. Blocks for some seconds. Throws
/// std::runtime_error.
void make_data_template(const std::string& directory);

/// Stands in for the kubelet: runs the pods of MySQL clusters as mariadbd and mysqld_exporter processes, each pod on a
/// loopback address of its own with the usual ports, and reports address and readiness in the pod's status. Volumes are
/// directories that outlive pods. Configuration and passwords come from the ConfigMap and Secrets, as in a container.
/// Jobs run too: their script, with the paths of the volumes in it.
class PodRunner {
 public:
  /// `data_template`: the directory that make_data_template() has filled.
  PodRunner(kube::Api& api, std::string data_template, kube::Env env);

  /// Of pods that start from now on: traffic passes through a proxy, which can be cut.
  bool behind_proxies = false;

  async::Awaitable<> run();

  /// The server process of a pod; 0: it does not run.
  [[nodiscard]] pid_t server_of(const std::string& pod) const;
  void signal_server(const std::string& pod, int number);
  void signal_exporter(const std::string& pod, int number);
  /// kill -9 of the server, which a kubelet would start again after a while.
  void kill_server(const std::string& pod) { signal_server(pod, SIGKILL); }
  /// As if its node were lost: the server is killed, and pods of this name do not start any more.
  void hold(const std::string& pod);
  async::Awaitable<> restart_server(std::string pod);
  /// Nobody reaches this pod any more, while its server lives. It must have started with `behind_proxies`.
  void cut_off(const std::string& pod);
  /// Its pod is to be deleted next, and begins with an empty volume then.
  void lose_volume(const std::string& pod);
  [[nodiscard]] std::string address_of(const std::string& pod) const;
  /// The last lines of a server's log, for failed tests.
  [[nodiscard]] std::string log_of(const std::string& pod) const;
  /// The directory that stands for a pod's own volume.
  [[nodiscard]] std::string volume_directory(const std::string& pod) const { return path_of(pod); }
  /// The directory that stands for a PersistentVolumeClaim that is no pod's own.
  [[nodiscard]] std::string claim_directory(const std::string& claim) const { return path_of("claim-" + claim); }

 private:
  struct Pod {
    std::string uid;
    kube::Key key;
    std::string address;
    std::string server_address;  // the same, but behind a proxy
    std::unique_ptr<ChildProcess> server;
    std::unique_ptr<ChildProcess> exporter;
    std::unique_ptr<PodProxy> proxy;
  };

  async::Awaitable<> start(kube::Object pod);
  async::Awaitable<> start_server(kube::Object object, Pod& pod);
  void start_exporter(Pod& pod, const std::string& password);
  async::Awaitable<std::string> secret(std::string ns, std::string name, std::string key);
  async::Awaitable<> run_job(kube::Object job);
  async::Awaitable<int> run_script(std::string script, std::string data, std::string claim,
                                   std::vector<std::string> environment);
  async::Awaitable<> report_ready(kube::Object pod, std::string address, std::string server_address);
  [[nodiscard]] std::string new_address() { return network_ + std::to_string(1 + addresses_++ % 250); }
  [[nodiscard]] std::string path_of(const std::string& name) const { return (directory_.path() / name).string(); }

  kube::Api& api_;
  kube::Env env_;
  std::string data_template_;
  kube::Cache<kube::Object> pods_;
  kube::Cache<kube::Object> jobs_;
  TemporaryDirectory directory_{"hubferry-mysql-"};
  std::map<std::string, Pod> running_;
  std::set<std::string> held_;
  std::set<std::string> lost_volumes_;
  std::string network_;  // "127.x.y."
  unsigned addresses_ = 0;
};

}  // namespace hubferry::app
