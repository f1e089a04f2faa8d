#pragma once

#include <vector>

#include "hubferry/async/types.hpp"
#include "sim/apiserver/kinds.hpp"

namespace hubferry::sim {

/// meta.k8s.io/v1 Table: what `kubectl get` prints.
json::object make_table(const Kind& kind, const std::vector<kube::Object>& objects, async::WallTime now);

}  // namespace hubferry::sim
