#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace hubferry::test {

/// A child process with its output. Destroyed while running, it is killed. Its environment is that of the test without
/// HUBFERRY_ variables, which would be flags to it.
class Process {
 public:
  /// Long enough never to matter on a busy machine: a test that waits this long has failed.
  static constexpr auto timeout = std::chrono::seconds(60);

  struct Options {
    std::vector<std::string> environment = {};  // "NAME=value"
    /// Where its standard error goes instead of err(); not closed here.
    std::optional<int> error_fd = {};
  };

  explicit Process(const std::vector<std::string>& command) : Process(command, Options{}) {}

  Process(const std::vector<std::string>& command, const Options& options) {
    out_.open();
    err_.open();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_.write_end, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, options.error_fd.value_or(err_.write_end), STDERR_FILENO);
    auto arguments = pointers(command);
    const auto variables = environment(options.environment);
    auto variable_pointers = pointers(variables);
    const int failure =
        posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), variable_pointers.data());
    posix_spawn_file_actions_destroy(&actions);
    out_.close_write_end();
    err_.close_write_end();
    if (failure != 0) {
      pid_ = -1;
      throw std::runtime_error("cannot start " + command.at(0) + ": " + std::strerror(failure));
    }
  }

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ <= 0 || exit_code_) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  /// Waits for its end. The exit code, or minus the number of the signal that ended it.
  int wait() {
    read_while([&] { return !reap(); }, "its end");
    out_.drain();
    err_.drain();
    return *exit_code_;
  }

  [[nodiscard]] bool running() { return !reap(); }

  /// Reads on until its standard error contains `text`, and returns all that it has written there.
  const std::string& await_error_text(std::string_view text) {
    read_while([&] { return err_.text.find(text) == std::string::npos && !ended_and_drained(); }, text);
    if (err_.text.find(text) == std::string::npos)
      throw std::runtime_error("it ended without '" + std::string(text) + "':\n" + err_.text);
    return err_.text;
  }

  /// The same for its standard output.
  const std::string& await_output_text(std::string_view text) {
    read_while([&] { return out_.text.find(text) == std::string::npos && !ended_and_drained(); }, text);
    if (out_.text.find(text) == std::string::npos)
      throw std::runtime_error("it ended without '" + std::string(text) + "':\n" + out_.text + err_.text);
    return out_.text;
  }

  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }

 private:
  struct Pipe {
    int read_end = -1;
    int write_end = -1;
    std::string text;

    Pipe() = default;
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
      if (read_end >= 0) ::close(read_end);
      close_write_end();
    }
    void open() {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
      read_end = ends[0];
      write_end = ends[1];
      fcntl(read_end, F_SETFL, O_NONBLOCK);
    }
    void close_write_end() {
      if (write_end >= 0) ::close(write_end);
      write_end = -1;
    }
    void drain() {
      char buffer[4096];
      ssize_t count = 0;
      while ((count = ::read(read_end, buffer, sizeof buffer)) > 0)
        text.append(buffer, static_cast<std::size_t>(count));
    }
  };

  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
  }

  static std::vector<std::string> environment(const std::vector<std::string>& more) {
    std::vector<std::string> result = more;
    const auto is_replaced = [&](std::string_view variable) {
      const auto name = variable.substr(0, variable.find('=') + 1);
      return std::any_of(more.begin(), more.end(), [&](const std::string& other) { return other.starts_with(name); });
    };
    for (char** variable = environ; *variable != nullptr; ++variable)
      if (!std::string_view(*variable).starts_with("HUBFERRY_") && !is_replaced(*variable))
        result.emplace_back(*variable);
    return result;
  }

  bool reap() {
    int status = 0;
    if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_)
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return exit_code_.has_value();
  }

  bool ended_and_drained() {
    if (!reap()) return false;
    out_.drain();
    err_.drain();
    return true;
  }

  template <typename Condition>
  void read_while(Condition condition, std::string_view goal) {
    const auto give_up = std::chrono::steady_clock::now() + timeout;
    while (condition()) {
      if (std::chrono::steady_clock::now() > give_up)
        throw std::runtime_error("waited in vain for " + std::string(goal) + "; its output:\n" + out_.text + err_.text);
      pollfd entries[] = {{.fd = out_.read_end, .events = POLLIN, .revents = 0},
                          {.fd = err_.read_end, .events = POLLIN, .revents = 0}};
      poll(entries, 2, 20);
      out_.drain();
      err_.drain();
      // A closed pipe polls as ready for ever: do not spin.
      if (((entries[0].revents | entries[1].revents) & POLLHUP) != 0) usleep(1000);
    }
  }

  pid_t pid_ = -1;
  std::optional<int> exit_code_;
  Pipe out_;
  Pipe err_;
};

/// The binary under test.
inline std::string hubferry_binary() {
  const char* path = std::getenv("HUBFERRY_BINARY");
  if (path == nullptr) throw std::runtime_error("HUBFERRY_BINARY does not say which binary to test: use ./dev test");
  return path;
}

}  // namespace hubferry::test
