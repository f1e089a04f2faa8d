#pragma once

#include <string_view>

#include "hubagent/requests.hpp"

/// Labels and annotations: those of hubferry, and mutations of objects that set and drop them.
namespace hubferry::hubagent {

/// hubferry's annotations on objects of others.
namespace annotations {

/// On a paused object: the uid of the migration that paused it. What the user had paused does not carry it.
inline constexpr const char* paused_by = "hubferry.io/paused-by";
/// On a ManagedCluster on the source: the KlusterletConfig that it had before, for a rollback.
inline constexpr const char* klusterlet_config_before = "hubferry.io/klusterlet-config-before";
/// On a ClusterDeployment that is about to be deleted: its spec.preserveOnDelete before, "true", "false" or "absent".
inline constexpr const char* preserve_on_delete_before = "hubferry.io/preserve-on-delete-before";
/// On a ManagedCluster on the source: the uid of the migration that has detached it. Somebody may have
/// accepted it since.
inline constexpr const char* detached_by = "hubferry.io/detached-by";
/// On a ManagedCluster on the source: the uid of the migration that deletes its ClusterDeployments. From then on only
/// the target has all of the cluster.
inline constexpr const char* deletion_begun = "hubferry.io/deletion-begun";
/// On a ManagedCluster on the source that a rollback has accepted again: its lease then, "<uid> <renewTime>". Once the
/// lease differs, the agent is back.
inline constexpr const char* returning = "hubferry.io/returning";
/// On a Namespace that was created for objects of migrations: deleted when no migration uses it any more.
inline constexpr const char* created_for_migrations = "hubferry.io/created-for-helpers";
/// On a ManifestWork of a user, "true": it is not copied, and what it deployed may be evicted.
inline constexpr const char* stays = "hubferry.io/stays";
/// On the copy of a ManifestWork, "true" or "false": whether the agent had applied it on the source. One that it could
/// not apply there does not keep the cluster from arriving. Stays with our label.
inline constexpr const char* applied_on_source = "hubferry.io/applied-on-source";
/// Prefix of an annotation on such a Namespace, one for each migration that uses it; then the uid.
inline constexpr const char* used_by_prefix = "use.hubferry.io/";

/// Everything with this prefix is ours and is not copied.
inline constexpr const char* own_domain = "hubferry.io/";

}  // namespace annotations

/// From the metadata of an object; nullptr or empty when absent.
std::string_view label_text(const json::object& object, std::string_view name);
const json::value* annotation_in(const json::object& object, std::string_view name);
std::string_view annotation_text(const json::object& object, std::string_view name);
/// A hub with ManagedClusterAutoApproval accepts every cluster without this annotation, also one that was just denied.
/// True if it was set now; its value is the migration's uid then.
bool keep_denied(json::object& object, const MigrationRef& migration);
/// True if the migration has detached this ManagedCluster, though somebody may have accepted it since.
bool was_detached(const MigrationRef& migration, const json::object& object);
/// True if the API server knows the object; false for one that a create_or_patch() is about to create.
bool exists(const json::object& object);

// Mutations, to be combined; each returns whether the object changed.
bool set_label(json::object& object, std::string_view name, std::string_view value);
bool set_annotation(json::object& object, std::string_view name, std::string_view value);
bool drop_label(json::object& object, std::string_view name);
bool drop_annotation(json::object& object, std::string_view name);
/// Sets every field of `wanted` and keeps the others; lists are replaced.
bool overlay(json::object& object, const json::object& wanted);

/// True if the object carries this migration's label.
bool is_ours(const MigrationRef& migration, const Object& object);
bool is_ours(const MigrationRef& migration, const json::object& object);

/// "hubferry.io/migration=<uid>"
std::string ours_selector(const MigrationRef& migration);

/// Whose label an object carries, for messages: "migration <uid>", or "somebody else".
std::string owner_of(const json::object& object);

/// Labels a copied object as a backup would have restored it: operators that install machines then leave the machine
/// alone.
void add_restore_labels(json::object& object, const Resource& resource);
/// Removes them from the objects of a namespace once the cluster has arrived; a user's own value stays.
Awaitable<Result<>> remove_restore_labels(const Hub& hub, std::string ns);

}  // namespace hubferry::hubagent
