#pragma once

#include <list>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/operation_error.hpp"
#include "hubferry/phase/handler.hpp"
#include "migration/admission.hpp"
#include "migration/cut_overs.hpp"
#include "migration/deadlines.hpp"
#include "migration/ledger.hpp"
#include "migration/reporter.hpp"

namespace hubferry::migration {

using async::Awaitable;
using phase::ReconcileState;

/// What the handlers of all migrations share.
struct Services {
  kube::Api& global;
  hubs::Hubs& hubs;
  Admission& admission;
  Reporter& reporter;
  CutOvers& cut_overs;
  ControllerOptions options;
  kube::Env env;
  WallTime began{};     // when this manager took over
  TimePoint settled{};  // from then on no write of its predecessor can take effect any more
  /// By uid, of migrations whose namespace is being deleted: their ConfigMap is gone and cannot be created again.
  std::map<std::string, Ledger> unwritten_ledgers = {};
  /// The uids of migrations that this manager has started: no predecessor has written for them.
  std::set<std::string> started = {};
  /// By uid, of migrations whose credential was created without an answer: until when that may take effect.
  std::map<std::string, TimePoint> open_credentials = {};
  /// The uids of migrations whose ledger this manager has claimed, and who else has written one of them since.
  std::set<std::string> claimed_ledgers = {};
  std::set<std::string> rivals = {};
  /// By uid: clusters whose outdated Secrets were to be deleted while their namespaces were, and why they stay.
  std::map<std::string, std::map<std::string, std::optional<Failure>>> tried_secrets = {};
};

using Context = phase::Context<Services>;
using Handler = phase::Handler<Services, Migration>;

/// A running step of a phase: the migration, the services, and the time that is left.
/// Lifetime: that of the handler's run.
class Step {
 public:
  Step(Context& context, Migration& migration);

  Migration& migration;

  Services* operator->() const { return &context_.services(); }
  [[nodiscard]] const Phase& phase() const { return context_.phase(); }
  [[nodiscard]] const std::string& name() const { return context_.handler(); }
  /// Where the definition leads from this phase: when it is done, and when it has failed.
  [[nodiscard]] const Phase& successor() const { return context_.successor(); }
  [[nodiscard]] const Phase& error_successor() const { return context_.error_successor(); }
  [[nodiscard]] const obs::Logger& log() const { return log_; }
  [[nodiscard]] async::Clock& clock() const { return context_.clock(); }
  [[nodiscard]] WallTime now() const { return context_.clock().wall_now(); }
  /// Until the deadline of the phase. Time without a manager does not count as an attempt: nobody tried.
  [[nodiscard]] const TimeBudget& time() const { return time_; }
  /// How long an operation of Rollbacking or Cleaning may take that begins now; they have no deadline as a whole.
  [[nodiscard]] Duration attempt_timeout() const;
  [[nodiscard]] TimePoint attempt_deadline() const { return async::later(clock().now(), attempt_timeout()); }

  /// "hub 'hub1'", for messages.
  [[nodiscard]] std::string source_name() const { return "hub '" + migration.from() + "'"; }
  [[nodiscard]] std::string target_name() const { return "hub '" + migration.to() + "'"; }

  /// Sets the condition by which this phase reports, or another.
  void report(kube::ConditionStatus status, std::string_view reason, std::string_view message);
  void report(std::string_view condition, kube::ConditionStatus status, std::string_view reason,
              std::string_view message);
  /// Starts the clock of another phase, and says in its condition what happens now.
  void enter(const Phase& next, std::string_view what_happens_now);
  /// Ends the phase: enters its successor.
  ReconcileState advance(std::string_view what_happens_now);
  /// Ends the phase: enters one that the definition declares as a forced transition from it.
  ReconcileState jump_to(const Phase& next, std::string_view what_happens_now);

  /// Says, while it lives, what the step waits for: it stands in the condition of the phase within two seconds.
  class [[nodiscard]] Wait {
   public:
    Wait(Step& step, std::string what) : waits_(step.waits_), place_(waits_.insert(waits_.end(), std::move(what))) {}
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait() { waits_.erase(place_); }

   private:
    std::list<std::string>& waits_;
    std::list<std::string>::iterator place_;
  };
  [[nodiscard]] const std::list<std::string>& waits() const { return waits_; }
  /// The same for single clusters. What operations on hubs wait for is in the hubs' connections.
  [[nodiscard]] hubagent::Waits& cluster_waits() { return cluster_waits_; }
  [[nodiscard]] const hubagent::Waits& cluster_waits() const { return cluster_waits_; }
  /// How far the step is, for the condition: "120 of 200 clusters copied".
  void set_progress(std::string text) { progress_ = std::move(text); }
  [[nodiscard]] const std::string& progress() const { return progress_; }
  /// What the last wait report of this step has put behind the condition's message; absent: there was none.
  [[nodiscard]] const std::optional<std::string>& wait_suffix() const { return wait_suffix_; }
  void set_wait_suffix(std::string suffix) { wait_suffix_ = std::move(suffix); }

  /// Writes the status now instead of at the end of the step: before long waits, and progress within them. A failed
  /// write is made up for by the next one.
  Awaitable<> save();

 private:
  Context& context_;
  obs::Logger log_;
  TimeBudget time_;
  std::list<std::string> waits_;
  hubagent::Waits cluster_waits_;
  std::string progress_;
  std::optional<std::string> wait_suffix_;
};

}  // namespace hubferry::migration
