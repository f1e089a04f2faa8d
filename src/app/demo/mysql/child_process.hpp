#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace hubferry::app {

/// A server or tool that runs beside us, without a terminal. It ends with the object, and with the thread that started
/// it, whatever happens to our process.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> environment = {};  // "NAME=value", beside our own
    std::string log = {};                       // its output is appended to this file; empty: nobody sees it
  };

  /// Throws std::runtime_error if it cannot be started.
  ChildProcess(const std::vector<std::string>& command, const Options& options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();
  void signal(int number);
  /// Blocks until its end. The exit code, or minus the number of the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

/// The path of a program, also where only administrators look; empty if there is none.
std::string find_program(const std::string& name);

}  // namespace hubferry::app
