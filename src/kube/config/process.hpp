#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::kube {

struct ProcessRequest {
  std::string command;  // looked for in PATH unless it holds a slash
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // on top of our own
  std::size_t most_output = std::size_t{1} << 20;
  bool use_pidfd = true;  // false: as on a kernel without them
  /// Our standard input, to talk to a person; in our process group, which owns the terminal.
  bool on_terminal = false;
  /// Our standard error; ProcessResult::errors is empty then.
  bool shows_errors = false;
};

struct ProcessResult {
  int exit_code = 0;   // meaningful where signal is 0; -1 when other code of this process has already reaped it
  int signal = 0;      // that ended it
  std::string output;  // standard output, whole
  std::string errors;  // the end of standard error
};

/// A program wrote more than it was allowed to.
class OutputTooLong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs a program with no input and none of our descriptors, in a process group of its own (but see `on_terminal`), and
/// collects what it writes until it ends. Descendants that outlive it are not waited for.
///
/// Cancellation: terminal. Whatever ends this call, the process has ended and been reaped before it returns; if it had
/// to be killed, so was its group. Only this one child is waited for: others of this process are not disturbed.
/// Errors: throws std::system_error when the program cannot be started, OutputTooLong, and a timeout at `deadline`.
async::Awaitable<ProcessResult> run_process(ProcessRequest request, async::Clock& clock, async::TimePoint deadline);

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
