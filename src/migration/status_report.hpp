#pragma once

#include "hubferry/kube/conditions.hpp"
#include "migration/ledger.hpp"

/// What users read in a migration's status. Pure functions.
namespace hubferry::migration {

/// Sets the condition, with the observed generation and the time of its last change. Conditions keep the order in which
/// they were first set.
void set_condition(Migration& migration, std::string_view type, kube::ConditionStatus status, std::string_view reason,
                   std::string_view message, WallTime now);

/// The message of a condition; empty where there is none.
std::string condition_message(const Migration& migration, std::string_view type);
std::string condition_reason(const Migration& migration, std::string_view type);

/// status.clusters: counts, "migrated/total", and the first failed clusters with their errors. `working`: clusters that
/// have neither arrived nor failed count as migrating, else as pending.
void put_counts(Migration& migration, const Ledger& ledger, bool working);

/// At most this many failed clusters are in the status, with this much text each: 5,000 clusters leave it small.
inline constexpr std::size_t most_failures_shown = 50;
inline constexpr std::size_t longest_failure_shown = 256;

/// "3 clusters", "1 cluster".
std::string count_clusters(std::size_t count);
/// "a, b, c and 17 more".
std::string some_names(const ClusterNames& names, std::size_t most = 5);
/// "a: not found; b, c and d: not Available; and 3 more".
std::string some_failures(const Failures& failures, std::size_t most = 5);
/// The reason that all failures share, else "Error".
std::string common_reason(const Failures& failures);
ClusterNames names_of(const Failures& failures);

/// "left behind, as the annotation … asks: hub2/a, hub2/b"
std::string left_behind_text(const Ledger& ledger);

/// How a rollback ended: the condition ResourceRolledBack.
struct RollbackVerdict {
  bool success = false;
  std::string reason;
  std::string message;  // what a person left behind, and what can be done about it
};
RollbackVerdict judge_rollback(const Migration& migration, const Ledger& ledger);

/// The conditions Ready, Succeeded and Stalled, as they follow from the phase and the other conditions.
void put_summary(Migration& migration, WallTime now);
/// Of the condition SpecChanged, and of its event.
extern const char* const spec_change_message;

/// Clusters that did not arrive and have no failure of their own failed with their phase.
void fail_remaining(const Migration& migration, Ledger& ledger);

}  // namespace hubferry::migration
