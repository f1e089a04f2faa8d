#pragma once

#include <string>
#include <string_view>

#include "hubferry/kube/event_recorder.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::mysql {

/// Events and metrics of clusters and backups: on transitions only, after the status was written.
class Reporter {
 public:
  Reporter(kube::Api& api, const std::string& instance, const kube::Env& env);

  /// Sees every change of a cluster: its first phase, failovers that ended.
  void see_cluster(const kube::Object* old, const kube::Object* now);
  void see_backup(const kube::Object* old, const kube::Object* now);
  void cluster_moved(const phase::Transition& transition);

  void event(const kube::Resource& kind, const kube::Object& object, kube::EventType type, std::string_view reason,
             std::string_view action, std::string_view note);
  /// FailoverSuccess, once for each failover: a successor that repeats it writes the same object. So it comes before
  /// the status that ends the failover; a process that died in between would leave none.
  async::Awaitable<> failover_succeeded(const kube::Object& cluster, std::string id, std::string promoted);
  async::Awaitable<> run() { return events_.run(); }

 private:
  kube::Api& api_;
  std::string instance_;
  kube::Env env_;
  kube::EventRecorder events_;
  obs::Family<obs::Counter>& phases_;
  obs::Family<obs::Gauge>& clusters_;
  obs::Gauge& without_primary_;
  obs::Gauge& unhealthy_replicas_;
  obs::Gauge& lagging_replicas_;
  obs::Gauge& overdue_backups_;
  obs::Gauge& full_volumes_;
  obs::Histogram& failover_seconds_;
  obs::Family<obs::Counter>& failovers_;
  obs::Histogram& backup_seconds_;
  obs::Family<obs::Counter>& backups_;
};

}  // namespace hubferry::mysql
