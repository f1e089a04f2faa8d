#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/event_recorder.hpp"
#include "relocator/deployment.hpp"
#include "relocator/relocator_spec.hpp"

namespace hubferry::relocator {

/// A ClusterDeployment that has arrived, and is not released there yet.
struct Unreleased {
  Key deployment;
  std::string destination;  // the hub; empty: not known
};

/// Reports relocations: metrics, events on ClusterDeployments, and the status of the ClusterRelocators.
/// Lifetime: source and what `env` refers to outlive it. Executor: one loop.
class Reporter {
 public:
  /// Calls its argument for each ClusterDeployment of the cache.
  using Deployments = std::function<void(const std::function<void(const Object&)>&)>;

  Reporter(kube::Api& source, std::string instance, kube::Env env);

  /// Before run().
  void follow(const ObjectCache& relocators, Deployments deployments);
  /// Writes events and statuses until cancelled.
  Awaitable<> run();
  /// Something has changed that a relocator's status shows.
  void touch() { changed_.notify(); }

  void event(const Object& deployment, kube::EventType type, std::string_view reason, std::string_view note);
  void begun(const Object& deployment, const std::string& relocator);
  /// It is about to be annotated as relocated, and to be deleted then. By us or by Hive, and whether or not we learn
  /// of our own deletion, it counts as moved once.
  void finishing(const Object& deployment, const std::string& relocator);
  /// True if its deletion has not been seen since.
  [[nodiscard]] bool awaits_deletion(const Key& key) const { return finishing_.contains(key); }
  /// True if its deletion is seen until then.
  Awaitable<bool> wait_for_deletion(Key key, async::TimePoint deadline);
  /// It has been deleted: it counts.
  void deleted(const Key& key);
  /// A ClusterDeployment has changed. Null: it did not, or does not exist.
  void observe(const Object* old, const Object* now);
  /// What that relocator has moved and could not release on the destination yet, and why. None: everything is released.
  void unreleased(const std::string& relocator, std::vector<Unreleased> deployments, std::string problem);
  /// `reason`: no_match, multiple_matches, new_match, deleted.
  void aborted(const Object& deployment, const std::string& relocator, std::string_view reason);

 private:
  struct Count {
    std::size_t matching = 0;
    std::size_t moving = 0;
    std::size_t failed = 0;
  };

  /// One that is to be deleted.
  struct Finishing {
    std::string uid;
    std::string relocator;
    std::shared_ptr<async::Event> deleted = std::make_shared<async::Event>();
  };

  struct Releasing {
    std::vector<Unreleased> deployments;
    std::string problem;
  };

  /// By relocator: what no event has reported yet.
  struct Progress {
    std::vector<std::string> begun;
    std::vector<std::string> relocated;
  };

  /// Events of the relocators, one for all that began or ended since the last time: a hub that moves has no need of two
  /// for each ClusterDeployment.
  void report_progress();
  Awaitable<> write_statuses();
  Awaitable<> write_status(ObjectCache::Pointer relocator, Count count);
  void set_released(json::object& status, const std::string& relocator, std::int64_t generation) const;
  [[nodiscard]] std::map<std::string, Count> count() const;

  kube::Api& source_;
  kube::Env env_;
  kube::EventRecorder events_;
  const ObjectCache* relocators_ = nullptr;
  Deployments deployments_;
  async::Notify changed_;
  std::unordered_map<Key, Finishing> finishing_;
  std::map<std::string, std::size_t> moved_;  // by relocator: not in its status yet
  std::map<std::string, Progress> progress_;
  std::map<std::string, Releasing> unreleased_;  // by relocator
  obs::Family<obs::Counter>& relocations_;
  obs::Family<obs::Counter>& aborts_;
  obs::Family<obs::Gauge>& deployments_by_state_;
};

}  // namespace hubferry::relocator
