#pragma once

#include <string>

namespace hubferry::app {

/// The machine's name: in a cluster, the pod's.
std::string host_name();

}  // namespace hubferry::app
