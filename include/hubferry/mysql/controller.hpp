#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/fence.hpp"
#include "hubferry/mysql/exporter.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/phase/machine.hpp"
#include "hubferry/sql/sql.hpp"

namespace hubferry::mysql {

/// The phases of MySQLCluster and of MySQLBackup, for rendering. They cannot be run.
const phase::DefinitionBase& cluster_definition();
const phase::DefinitionBase& backup_definition();

struct ControllerOptions {
  std::string watch_namespace = {};  // empty: all
  std::string instance = {};         // this process, in events
  std::string exporter_image = "prom/mysqld-exporter:v0.14.0";
  async::Duration probe_interval = std::chrono::seconds{10};
  async::Duration probe_timeout = std::chrono::seconds{5};
  async::Duration resync = std::chrono::seconds{30};
  /// A server that started this recently keeps its read-only state: it may still be recovering.
  async::Duration young = std::chrono::seconds{15};
  /// How often servers are asked how much of their volumes is left: a little less than two passes.
  async::Duration volume_interval = std::chrono::seconds{55};
  std::function<void(const phase::Transition&)> on_transition = {};  // for tests
  obs::CheckState* readiness = nullptr;
  /// When its term ends nothing is written any more, neither to the API server nor to a database.
  kube::Fence* fence = nullptr;
};

/// The MySQL operator: reconciles MySQLClusters and MySQLBackups, probes their servers, and fails over.
/// Lifetime: everything given outlives it. Executor: one loop.
class Controller {
 public:
  Controller(kube::Api& api, sql::Connector& connector, Exporter& exporter, ControllerOptions options, kube::Env env);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller();

  /// Works until cancelled. For the leader only: losing the lead must cancel it.
  async::Awaitable<> run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::mysql
