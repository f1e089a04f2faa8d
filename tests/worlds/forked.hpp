#pragma once

#include <functional>
#include <optional>
#include <string>

/// Worlds in child processes. A world has one thread and no sockets, so fork() clones it as it stands, with all its
/// coroutines, at the price of a few pages: what was built once serves many runs, and a run may crash or hang.
namespace hubferry::worlds {

/// What a child reported.
struct Report {
  std::string text;
  std::string crash;  // why it ended without a report; empty: it did not
  double cpu_seconds = 0;
};

/// Runs `body` in a clone of this process. `seconds`: one that takes longer (of CPU time) hangs;
/// one that does nothing is ended too, after thirty times as long.
Report run_in_clone(const std::function<std::string()>& body, unsigned seconds = 120);

/// The two halves of run_in_clone(), for a clone that continues where it is: nothing in the clone itself, which has to
/// end with report_and_exit(); its report in the parent.
std::optional<Report> clone(unsigned seconds = 120);
[[noreturn]] void report_and_exit(const std::string& text);

}  // namespace hubferry::worlds
