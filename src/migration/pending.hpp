#pragma once

#include <map>

#include "migration/ledger.hpp"
#include "migration/step.hpp"

/// What keeps a rollback or a cleanup from ending, and how it is retried: for as long as it takes, with growing pauses,
/// and visible as reason RollbackPending or CleanupPending. Only a person can end it before, by naming what stays.
namespace hubferry::migration {

/// The annotation names::leave_annotation, read: "hub2" is everything of the migration on that hub, "hub2/a" what
/// belongs to cluster a there.
class LeftBehind {
 public:
  LeftBehind() = default;
  explicit LeftBehind(const Migration& migration);

  [[nodiscard]] bool covers(const std::string& hub) const { return names_.contains(hub); }
  [[nodiscard]] bool covers(const std::string& hub, const std::string& cluster) const;

 private:
  std::set<std::string> names_;
};

/// Collected in one round over all clusters.
class Pending {
 public:
  explicit Pending(const Migration& migration) : left_behind_(migration) {}

  /// A cluster waits for something on this hub. The first reason is kept. False: a person has given it up.
  bool add(const std::string& hub, const std::string& cluster, std::string message);
  void add(const std::string& hub, const Failures& failures);
  /// Something of the migration itself is still on this hub, or the hub could not be asked.
  void add_objects(const std::string& hub, std::string message);

  /// Whatever it waits for, some cluster may need the migration's credential yet.
  void keep_credential() { keeps_credential_ = true; }
  [[nodiscard]] bool keeps_credential() const { return keeps_credential_; }

  /// Nothing is left but what a person gave up.
  [[nodiscard]] bool empty() const { return clusters_.empty() && objects_.empty(); }
  /// None of the clusters waits for this hub.
  [[nodiscard]] bool waits_for(const std::string& hub) const;
  [[nodiscard]] const std::set<std::string>& given_up() const { return given_up_; }
  /// Per cluster what it waits for.
  [[nodiscard]] std::map<std::string, std::string> waiting() const;
  /// "2 clusters wait: a: …; b: …. hub 'hub2': …"
  [[nodiscard]] std::string message() const;

 private:
  struct Wait {
    std::string hub;
    std::string message;
  };

  LeftBehind left_behind_;
  std::map<std::string, Wait> clusters_;
  std::map<std::string, std::string> objects_;  // by hub
  std::set<std::string> given_up_;              // "hub2/a", "hub2"
  bool keeps_credential_ = false;
};

/// Ends this run of the step: the condition says what is pending, and the step is entered again after a pause that
/// grows with the time that the phase has lasted, or at once if somebody changes the migration.
ReconcileState postpone(Step& step, const std::string& message);

/// Nothing is pending any more: removes what postpone() has recorded for this step.
void clear_problem(Step& step);

/// Until the writes of a previous manager process, which may still have been on their way when it ended, have taken
/// effect. Without that a rollback or a cleanup would miss what appears only after it.
Awaitable<> wait_for_previous_writes(Step& step);

}  // namespace hubferry::migration
