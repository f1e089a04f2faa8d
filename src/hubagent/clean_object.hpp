#pragma once

#include "hubferry/hubagent/bundle.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

/// The object without what belongs to the hub that it is on: identity, owners, finalizers, bookkeeping, our own marks
/// and pauses, and its status unless that travels. The same however far its migration has come, so that what was sent
/// can be compared later. A ManagedCluster arrives accepted, and without taints that a hub puts on by itself.
CarriedObject clean_object(const kube::Object& object, const kube::Resource& resource, bool with_status);

}  // namespace hubferry::hubagent
