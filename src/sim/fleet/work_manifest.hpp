#pragma once

#include <string>
#include <vector>

#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

/// What a ManifestWork says about its manifests.
namespace hubferry::sim {

struct WorkManifest {
  kube::Resource resource;
  kube::json::object object;
  bool read_only = false;    // compared only
  bool create_only = false;  // one that exists is owned, and not changed
  bool orphaned = false;     // stays when the work is deleted
};

std::vector<WorkManifest> manifests_of(const kube::Object& work);

/// How AppliedManifestWorks name the hub of this URL.
std::string name_of_hub(const std::string& server);

/// Adds the AppliedManifestWork to the owners of `object`, or removes it; true if that changed it.
bool set_applied_owner(kube::json::object& object, const kube::Object& applied, bool owned);

/// Replaces spec, data and the like by those of the manifest, and adds its labels and annotations; true if that changed
/// anything.
bool put_manifest(kube::json::object& object, const kube::json::object& manifest);

}  // namespace hubferry::sim
