#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/apiserver/schema.hpp"

namespace hubferry::sim {

/// Fields as paths of steps, as fieldsV1 names them: `f:spec`, `k:{"type":"Ready"}`, `v:"x"`.
using FieldPath = std::string;
using FieldSet = std::set<FieldPath>;
using Leaves = std::map<FieldPath, const json::value*>;

struct FieldManager {
  std::string name;
  bool applies = false;  // Apply, or Update
  std::string subresource;
  std::string api_version;
  std::string time;
  FieldSet fields;
};

/// Who owns which field of one object.
///
/// As long as nobody applied, the object's creator owns all that no other manager has changed, and that is not
/// written down: most objects have one writer and cost nothing here.
struct ManagedFields {
  std::vector<FieldManager> managers;
  bool rest_is_creators = true;

  FieldManager& of(const std::string& name, bool applies, const std::string& subresource);
  /// As in metadata.managedFields.
  [[nodiscard]] json::array to_json() const;
};

/// All fields that somebody can own; the pointers lead into `object`.
Leaves leaves_of(const json::object& object, const Schema* schema);

/// An update: what `after` changed belongs to `manager` now, and to nobody else.
void record_update(ManagedFields& managed, const FieldManager& manager, bool is_creator, const json::object& before,
                   const json::object& after, const Schema* schema);

/// Server-side apply of `applied` by `manager` on `live`, which becomes the merged object.
/// Errors: 409, naming managers and fields, unless forced.
Outcome<> apply_fields(ManagedFields& managed, const FieldManager& manager, const std::string* creator, bool force,
                       json::object& live, const json::object& applied, const Schema* schema);

}  // namespace hubferry::sim
