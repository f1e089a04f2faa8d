#pragma once

#include <optional>
#include <string>

#include "app/status/migration_view.hpp"

/// Whether a migration can be cancelled, rolled back or retried in the state that it is in: decided before anything is
/// written, by what the manager would do.
namespace hubferry::app {

struct Verdict {
  enum class Kind {
    possible,
    unnecessary,  // it has been requested before: nothing is to be done
    refused,
  };

  Kind kind = Kind::possible;
  std::string message{};   // what will happen, or the reason why nothing does
  bool takes_time = true;  // the manager has work to do, which people may want to watch

  bool operator==(const Verdict&) const = default;
};

/// Cancelling is deleting: the manager rolls back first.
Verdict judge_cancel(const MigrationView& migration);

/// The manager retries the rollback of a failed migration that left something behind, and returns clusters that the
/// target lost before they were deleted from the source. `is_requested`: the annotation is set.
Verdict judge_rollback_request(const MigrationView& migration, bool is_requested);

/// A retry is a new migration of the clusters that did not arrive.
Verdict judge_retry(const MigrationView& migration);

/// The spec of a retry. `ledger`: the migration's own one, if it exists. Throws std::runtime_error if it is unknown
/// which clusters did not arrive.
migration::MigrationSpec retry_spec(const kube::Object& migration, const std::optional<kube::Object>& ledger);

}  // namespace hubferry::app
