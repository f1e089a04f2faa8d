#pragma once

#include "hubferry/kube/object.hpp"

namespace hubferry::sim {

/// The object's metadata, made when there is none.
inline kube::json::object& metadata_of(kube::json::object& object) {
  auto& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = kube::json::object{};
  return metadata.get_object();
}

}  // namespace hubferry::sim
