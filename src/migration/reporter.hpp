#pragma once

#include "hubferry/kube/event_recorder.hpp"
#include "hubferry/obs/metrics.hpp"
#include "hubferry/phase/machine.hpp"
#include "migration/ledger.hpp"

namespace hubferry::migration {

/// Reports what happens: as events on the migration, and as metrics. Executor: one loop.
class Reporter {
 public:
  Reporter(kube::Api& global, std::string instance, const kube::Env& env);

  /// Writes events until cancelled.
  async::Awaitable<> run() { return events_.run(); }
  /// Returns when all events are written; run() must be running.
  async::Awaitable<> flushed() { return events_.flushed(); }

  /// The cache's view of a migration, for the gauge of phases. Either may be null.
  void see(const Migration* old, const Migration* now);

  /// The message of a phase's condition, and when the phase began: for the event of the next transition.
  void remember(const Migration& migration, const Phase& phase, WallTime began);
  /// A transition was written.
  void moved(const phase::Transition& transition);
  /// The migration is gone. If it had just ended, no transition could be written: this is its last event.
  void forget(const kube::Key& key);
  /// A migration ends with the next transition: its result is counted when that is written. Its duration counts from
  /// when it was admitted.
  void ends(const Migration& migration, const Ledger& ledger, bool success);

  /// One event a cluster, or one for all if there are many.
  void clusters_failed(const Migration& migration, const Phase& phase, const Failures& failures);
  void warn(const Migration& migration, std::string_view reason, std::string_view action, std::string_view note);
  /// A cluster has joined the target. `cut_over`: since it was detached from the source.
  void joined(Duration cut_over);
  void rolled_back(hubagent::Stage stage, bool success);

  /// Up to this many failed clusters get an event each.
  static constexpr std::size_t most_single_events = 20;

 private:
  struct PhaseMessage {
    kube::ObjectReference regarding;
    std::string message;
    WallTime began;
  };

  struct Result {
    kube::ObjectReference regarding;
    std::size_t migrated = 0;
    std::size_t failed = 0;
    std::size_t rolled_back = 0;
    std::optional<WallTime> started;
    bool success = false;
  };

  void count(const Result& result);

  kube::EventRecorder events_;
  async::Clock& clock_;
  std::unordered_map<kube::Key, PhaseMessage> messages_;
  std::unordered_map<kube::Key, Result> results_;  // of migrations whose last status write is yet to come
  obs::Family<obs::Gauge>& migrations_;
  obs::Family<obs::Counter>& entries_;
  obs::Family<obs::Counter>& outcomes_;
  obs::Family<obs::Histogram>& phase_duration_;
  obs::Family<obs::Histogram>& duration_;
  obs::Family<obs::Counter>& clusters_;
  obs::Histogram& cut_over_;
  obs::Family<obs::Counter>& rollbacks_;
  obs::Family<obs::Gauge>& cleanup_pending_;
  obs::Family<obs::Gauge>& clusters_now_;
};

}  // namespace hubferry::migration
