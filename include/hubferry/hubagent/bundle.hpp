#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

/// One object to copy, without everything that belongs to the hub it comes from.
struct CarriedObject {
  kube::json::object object;  // with apiVersion and kind
  bool with_status = false;   // its status is copied too
};

/// An object of a user that is not copied, and why.
struct StayingObject {
  std::string kind;
  std::string name;
  std::string why;
};

/// All that is copied of one cluster, in the order in which it is applied: referenced objects come first.
struct ClusterResources {
  std::string cluster;
  std::vector<CarriedObject> objects;
  std::vector<StayingObject> staying{};  // for people: a target ignores it
};

/// Whole clusters, together at most `bundle_limit` bytes of JSON, or one cluster that is larger by itself.
struct Bundle {
  std::vector<ClusterResources> clusters;
};

inline constexpr std::size_t bundle_limit = 800UL * 1024;

/// Takes a bundle from the source to wherever it goes. The next bundle is collected meanwhile; only a few are in
/// flight, so that memory stays bounded.
using BundleSink = std::function<async::Awaitable<>(Bundle)>;

}  // namespace hubferry::hubagent
