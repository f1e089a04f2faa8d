#pragma once

#include <sys/types.h>

#include "kube/config/process.hpp"

namespace hubferry::kube {

/// A process that was just started. The descriptors are the caller's; reading from them does not block.
struct Spawned {
  pid_t pid = -1;
  int pidfd = -1;  // readable when the process has ended; -1 where the kernel has none
  int output = -1;
  int errors = -1;
};

/// Throws std::system_error.
Spawned spawn(const ProcessRequest& request);

}  // namespace hubferry::kube
