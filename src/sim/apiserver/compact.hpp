#pragma once

#include "hubferry/kube/object.hpp"

namespace hubferry::sim {

/// The same object in one block of memory of just its size, instead of an allocation for every key and string.
/// Copies of it may be changed freely, on any loop: what they grow by comes from the heap.
kube::Object compact(const kube::json::object& object);

}  // namespace hubferry::sim
