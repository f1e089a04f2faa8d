#pragma once

#include <string_view>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

namespace json = kube::json;

/// Annotations of our own, on objects of others.
namespace marks {

/// On a paused object: the uid of the migration that paused it. What the user had paused does not carry it.
inline constexpr const char* paused_by = "hubferry.io/paused-by";
/// On a ManagedCluster on the source: the KlusterletConfig that it had before, to go back to.
inline constexpr const char* klusterlet_config_before = "hubferry.io/klusterlet-config-before";
/// On a ClusterManager: how automatic approval was before the first of our migrations: "absent" or "disabled".
inline constexpr const char* auto_approval_before = "hubferry.io/auto-approval-before";
/// And the users that our migrations need it for, with commas between them.
inline constexpr const char* auto_approval_users = "hubferry.io/auto-approval-users";
/// On a Namespace that was created for helper objects: goes when no migration uses it any more.
inline constexpr const char* created_for_helpers = "hubferry.io/created-for-helpers";
/// Prefix of an annotation on such a Namespace, one for each migration that uses it; then the uid.
inline constexpr const char* used_by_prefix = "use.hubferry.io/";

/// All that begins so is ours and stays on its hub.
inline constexpr const char* own_domain = "hubferry.io/";

}  // namespace marks

/// What is in metadata, of objects in the making; nullptr or empty when absent.
std::string_view label_text(const json::object& object, std::string_view name);
const json::value* annotation_in(const json::object& object, std::string_view name);
std::string_view annotation_text(const json::object& object, std::string_view name);

// Mutations, to be combined; each tells whether the object changed.
bool set_label(json::object& object, std::string_view name, std::string_view value);
bool set_annotation(json::object& object, std::string_view name, std::string_view value);
bool drop_label(json::object& object, std::string_view name);
bool drop_annotation(json::object& object, std::string_view name);
/// Puts every field of `wanted` in, leaving others; lists are replaced.
bool overlay(json::object& object, const json::object& wanted);

/// Does it carry this migration's label?
bool is_ours(const MigrationRef& migration, const kube::Object& object);
bool is_ours(const MigrationRef& migration, const json::object& object);

/// "hubferry.io/migration=<uid>"
std::string ours_selector(const MigrationRef& migration);

/// Whose label an object carries, for messages: "migration <uid>", or "somebody else".
std::string owner_of(const json::object& object);

}  // namespace hubferry::hubagent
