#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// A migration as the page shows it: the content of `hubferry status NAME`, with times in milliseconds since 1970.
kube::json::object migration_json(const kube::Object& migration, async::WallTime now);

}  // namespace hubferry::app
