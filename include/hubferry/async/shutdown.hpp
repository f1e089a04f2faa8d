#pragma once

#include <functional>

#include "hubferry/async/event.hpp"

namespace hubferry::async {

struct ShutdownPolicy {
  /// From the first signal to the moment when the main coroutine is cancelled.
  Duration grace = 25s;
  /// From there to the moment when the process ends regardless. Together below the 30 s that Kubernetes gives a pod.
  Duration unwind = 3s;
  /// Called with a message for the log at each step. The last message before the process exits comes from another
  /// thread: the loop's own may hang.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Runs `body` on a loop in this thread and returns its exit code.
///
/// SIGTERM, SIGINT or SIGHUP (unless it was ignored, as by nohup) sets the event that `body` got, so that it can shut
/// down gracefully. If it has not ended after the grace period it is cancelled, and if it does not even unwind, the
/// process ends with code 1. A second signal ends the process at once with code 128 + signal. A body that ends by
/// cancellation after a signal counts as code 0; any other exception is thrown. Both time limits and the second signal
/// also end a loop that hangs.
int run_main(std::function<Awaitable<int>(Event& stop)> body, ShutdownPolicy policy);

}  // namespace hubferry::async
