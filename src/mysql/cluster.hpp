#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hubferry/kube/cache.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/phase/kube_store.hpp"
#include "mysql/prober.hpp"
#include "mysql/reporter.hpp"

namespace hubferry::mysql {

using ObjectCache = kube::Cache<kube::Object>;
using async::Awaitable;
using async::Duration;
using kube::ConditionStatus;
using phase::ReconcileState;

/// A failover or switchover that is under way, as the status has it: written before any server is touched.
struct FailoverRecord {
  std::string from;
  std::string to;       // empty: not chosen yet
  std::string wanted;   // planned: the pod that was asked for; empty: any
  std::string started;  // when the old primary was found to be down
  bool planned = false;
  std::string fenced;        // when the old primary was first known to accept no writes
  std::string without;       // the servers that were given up for it
  std::string received;      // what the chosen replica has, also after it was given up: a new primary must have it
  std::string chosen_start;  // Facts::started of `to` when it was selected: another value means a restart
  std::string waiting_for;   // servers that must be asked before `to` becomes writable, and give no answer
  std::string waiting_since;
};

/// In a list with ", " between the names, as the status has them.
bool is_named(std::string_view list, const std::string& name);

/// A time of the status; `otherwise` if there is none.
async::WallTime time_of(const std::string& text, async::WallTime otherwise);

/// A MySQLCluster with its status.
struct Cluster : phase::KubeResource {
  explicit Cluster(phase::KubeResource resource) : phase::KubeResource(std::move(resource)) {}

  [[nodiscard]] std::string name() const { return std::string{object.name()}; }
  [[nodiscard]] std::string ns() const { return std::string{object.ns()}; }
  [[nodiscard]] std::string primary() const { return std::string{kube::string_at(status, {"primary"})}; }
  [[nodiscard]] std::optional<FailoverRecord> failover() const;
  void set_failover(const FailoverRecord& record);
  void clear_failover() { status.erase("failover"); }
  /// Replicas that a failover need not wait for: a person has said so.
  [[nodiscard]] std::vector<std::string> given_up() const;
  void set_given_up(const std::vector<std::string>& pods);
};

/// What the handlers of clusters and backups share.
struct Services {
  kube::Api& api;
  sql::Connector& connector;
  Prober& prober;
  Reporter& reporter;
  const ControllerOptions& options;
  kube::Env env;
  // The caches of the kinds that the controllers watch.
  const ObjectCache* pods = nullptr;
  const ObjectCache* services = nullptr;
  const ObjectCache* endpoint_slices = nullptr;
  const ObjectCache* config_maps = nullptr;
  const ObjectCache* claims = nullptr;
  const ObjectCache* backups = nullptr;
};

using ClusterContext = phase::Context<Services>;

/// Ends a pass: it is retried, or the cluster has failed.
class PassError : public std::runtime_error {
 public:
  enum class Kind { retry, fatal };
  PassError(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  [[nodiscard]] bool is_fatal() const { return kind_ == Kind::fatal; }

 private:
  Kind kind_;
};

/// The value, or a PassError that is retried.
template <typename T>
T take(kube::Result<T> result, const std::string& what) {
  if (!result) throw PassError(PassError::Kind::retry, what + ": " + result.error().describe());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
template <typename T>
T take(sql::Result<T> result, const std::string& what) {
  if (!result) throw PassError(PassError::Kind::retry, what + ": " + result.error().describe());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace hubferry::mysql
