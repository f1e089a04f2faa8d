#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/apiserver/schema.hpp"

namespace hubferry::sim {

/// Fields as paths in the notation of fieldsV1: `f:spec`, `k:{"type":"Ready"}`, `v:"x"`.
using FieldPath = std::string;
using FieldSet = std::set<FieldPath>;
using Leaves = std::map<FieldPath, const json::value*>;

struct FieldManager {
  std::string name;
  bool applies = false;  // Apply; false: Update
  std::string subresource;
  std::string api_version;
  std::string time;
  FieldSet fields;
};

/// Which manager owns which fields of one object.
///
/// Until the first apply, the object's creator owns all fields that no other manager has changed, without recording
/// them: most objects have one writer and cost nothing here.
struct ManagedFields {
  std::vector<FieldManager> managers;
  bool rest_is_creators = true;

  FieldManager& of(const std::string& name, bool applies, const std::string& subresource);
  /// As in metadata.managedFields.
  [[nodiscard]] json::array to_json() const;
};

/// All fields that can be owned; the pointers are into `object`.
Leaves leaves_of(const json::object& object, const Schema* schema);

/// An update: the fields that `after` changed are now owned by `manager` alone.
void record_update(ManagedFields& managed, const FieldManager& manager, bool is_creator, const json::object& before,
                   const json::object& after, const Schema* schema);

/// Server-side apply of `applied` by `manager` on `live`, which becomes the merged object.
/// Errors: 409, naming managers and fields, unless forced.
Outcome<> apply_fields(ManagedFields& managed, const FieldManager& manager, const std::string* creator, bool force,
                       json::object& live, const json::object& applied, const Schema* schema);

}  // namespace hubferry::sim
