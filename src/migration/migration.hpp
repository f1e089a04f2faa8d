#pragma once

#include <optional>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/hubagent/target_hub.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/phase/kube_store.hpp"

namespace hubferry::migration {

using async::Duration;
using async::WallTime;
using hubagent::ClusterNames;
using phase::Phase;
namespace json = boost::json;

/// How clusters prove who they are when they first knock at the target: kept in the status, without the secret.
struct Credential {
  static constexpr const char* managed_service_account = "ManagedServiceAccount";
  static constexpr const char* service_account = "ServiceAccount";

  std::string kind;
  hubagent::BootstrapIdentity identity;
};

/// A ManagedClusterMigration in the hands of its handlers: what people asked for, and what we noted in its status.
struct Migration : phase::KubeResource {
  Migration() = default;
  explicit Migration(phase::KubeResource read) : KubeResource(std::move(read)) {}

  [[nodiscard]] hubagent::MigrationRef ref() const;
  [[nodiscard]] bool is_being_deleted() const { return object.is_being_deleted(); }
  [[nodiscard]] bool asks_for_rollback() const;
  /// Its deletion waits for us.
  [[nodiscard]] bool is_held_back() const;

  /// The hubs as of the start; before that, what the spec says.
  [[nodiscard]] std::string from() const { return pinned("from"); }
  [[nodiscard]] std::string to() const { return pinned("to"); }
  void pin_hubs();
  /// Sorted, each once. Absent where the spec names a placement.
  [[nodiscard]] std::optional<ClusterNames> listed_clusters() const;
  [[nodiscard]] std::optional<std::string> placement() const;

  /// The clock of the phase it is in. `enter` sets it, together with the transition that it belongs to.
  void enter(const Phase& phase, WallTime now);
  [[nodiscard]] std::optional<WallTime> entered(const Phase& phase) const;

  [[nodiscard]] std::optional<WallTime> time(std::string_view field) const;
  void set_time(std::string_view field, WallTime time);

  [[nodiscard]] std::optional<Credential> credential() const;
  void set_credential(const Credential& credential);

  /// How far it had come when it failed; absent when nothing is to be undone.
  [[nodiscard]] std::optional<hubagent::Stage> rollback_stage() const;
  void set_rollback_stage(hubagent::Stage stage);

  /// What could not be done while `activity` ("rollback", "cleanup"), by step: a sentence each.
  void note_problem(std::string_view activity, std::string_view step, std::string_view sentence);
  [[nodiscard]] json::object problems(std::string_view activity) const;

 private:
  [[nodiscard]] std::string pinned(std::string_view field) const;
};

/// True for an ended migration that must return to work: a Failed one whose rollback is requested once more, and any
/// that is being deleted while it still holds its finalizer, which nothing else would remove.
bool wants_to_resume(const Migration& migration);
/// Resets what the last rollback and cleanup left in the status; the clock of `next` starts.
void prepare_to_resume(Migration& migration, const Phase& next, WallTime now);

}  // namespace hubferry::migration
