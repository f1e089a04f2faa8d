#pragma once

#include "hubferry/migration/phases.hpp"
#include "hubferry/phase/kube_store.hpp"
#include "migration/status_fields.hpp"

namespace hubferry::migration {

using phase::Phase;

/// A ManagedClusterMigration as its handlers see and change it: the spec, and the status that is written back.
struct Migration : phase::KubeResource {
  Migration() = default;
  explicit Migration(phase::KubeResource read) : KubeResource(std::move(read)) {}

  [[nodiscard]] hubagent::MigrationRef ref() const;
  [[nodiscard]] bool is_being_deleted() const { return object.is_being_deleted(); }
  [[nodiscard]] bool requests_rollback() const;
  /// As MigrationStatus::is_cleanup_pending().
  [[nodiscard]] bool is_cleanup_pending() const;
  /// It is being deleted, and our finalizer is still on it.
  [[nodiscard]] bool has_pending_deletion() const;

  [[nodiscard]] MigrationSpec spec() const { return read_spec(object.json()); }
  /// The hubs as of the start; before that, those of the spec.
  [[nodiscard]] std::string from() const { return pinned("from"); }
  [[nodiscard]] std::string to() const { return pinned("to"); }
  void pin_hubs();
  /// Records which clusters the spec selects now; from here on a change of them is ignored.
  void pin_selection();
  /// The clusters that this migration moves, if its spec still lists them; empty: only the ledger, or the hubs, know
  /// them.
  [[nodiscard]] ClusterNames listed_clusters() const;
  /// The spec selects something else than this migration moves.
  [[nodiscard]] bool is_spec_changed() const;

  /// When the phase was entered. `enter` sets it, in the same write as the transition.
  void enter(const Phase& phase, WallTime now);
  [[nodiscard]] std::optional<WallTime> entered(const Phase& phase) const { return phase_start_in(status, phase); }

  [[nodiscard]] std::optional<WallTime> started() const { return time_in(status, status_fields::started); }
  [[nodiscard]] std::optional<WallTime> cut_over() const { return time_in(status, status_fields::cut_over); }
  /// A renewal on the target after this proves that a cluster may be deleted from the source: after the cut-over, or
  /// after the last cluster was detached that had left the source by itself. Whether one is there is another question,
  /// for which the cut-over counts: those that live on the target are not to be taken back.
  [[nodiscard]] std::optional<WallTime> proof_since() const;
  void set_late_detachment(WallTime time) { set_time(status_fields::late_detachment, time); }
  void set_started(WallTime time) { set_time(status_fields::started, time); }
  void set_cut_over(WallTime time) { set_time(status_fields::cut_over, time); }
  void set_completed(WallTime time) { set_time(status_fields::completed, time); }

  [[nodiscard]] std::optional<Credential> credential() const { return credential_in(status); }
  void set_credential(const Credential& credential);

  /// What the rollback has to undo; absent: nothing.
  [[nodiscard]] std::optional<hubagent::Stage> rollback_stage() const { return rollback_stage_in(status); }
  void set_rollback_stage(hubagent::Stage stage);

  /// What could not be done in a rollback or a cleanup (see `activities`): one problem a step.
  void set_problem(const StepProblem& problem);
  void clear_problem(std::string_view activity, std::string_view step);
  [[nodiscard]] std::vector<StepProblem> problems(std::string_view activity) const {
    return problems_in(status, activity);
  }

 private:
  [[nodiscard]] std::string pinned(std::string_view field) const;
  void set_time(std::string_view field, WallTime time);
};

/// True for an ended migration that must return to work: one that failed, or left something behind, and whose rollback
/// is requested; and any that is being deleted while it still holds its finalizer, which nothing else would remove.
bool wants_to_resume(const Migration& migration);
/// Resets what the last rollback and cleanup left in the status; the clock of `next` starts.
void prepare_to_resume(Migration& migration, const Phase& next, WallTime now);

}  // namespace hubferry::migration
