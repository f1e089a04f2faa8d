#pragma once

#include <string>

#include "hubferry/migration/resource.hpp"

namespace hubferry::app {

/// Where migrations are kept unless the user names another namespace.
inline constexpr const char* default_migration_namespace = "hubferry-system";

/// A migration that is to be created.
struct MigrationDraft {
  kube::Key key;
  migration::MigrationSpec spec;
  kube::json::object object;  // the whole resource
};

/// The resource with that spec. An empty name of `key` becomes default_migration_name().
MigrationDraft draft_of(kube::Key key, const migration::MigrationSpec& spec);

/// A migration from a file, without its status. An empty namespace or name of `key` is that of the file, else the
/// default. Throws std::runtime_error as plan_spec_of().
MigrationDraft draft_from(kube::Key key, const kube::json::object& object);

/// The same from the only object of a file; "-" is standard input.
MigrationDraft draft_from_file(kube::Key key, const std::string& file);

/// "hub1-to-hub2-1a2b3c4d": the same for the same hubs and clusters, so that a repeated call finds its migration.
std::string default_migration_name(const migration::MigrationSpec& spec);

/// The name of a migration that retries another: "NAME-retry", then "NAME-retry-2".
std::string retry_name(const std::string& name);

/// Whether both move the same clusters between the same hubs, with the same settings.
bool is_same_migration(const migration::MigrationSpec& one, const migration::MigrationSpec& other);

/// "3 clusters from hub1 to hub2", "the clusters of Placement p from hub1 to hub2".
std::string describe(const migration::MigrationSpec& spec);

}  // namespace hubferry::app
