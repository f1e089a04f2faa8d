#include "kube/config/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

namespace hubferry::kube {

namespace {

void check(int error) {
  if (error != 0) throw std::system_error(error, std::generic_category());
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) check(errno);
    reading = ends[0];
    writing = ends[1];
    if (::fcntl(reading, F_SETFL, O_NONBLOCK) != 0) check(errno);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    if (reading >= 0) ::close(reading);
    if (writing >= 0) ::close(writing);
  }

  int release_reading() { return std::exchange(reading, -1); }

  int reading = -1;
  int writing = -1;
};

struct FileActions {
  FileActions() { check(::posix_spawn_file_actions_init(&raw)); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&raw); }

  posix_spawn_file_actions_t raw{};
};

struct Attributes {
  explicit Attributes(bool own_group) {
    check(::posix_spawnattr_init(&raw));
    // The program must not inherit our blocked or ignored signals: it starts as from a shell.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    check(::posix_spawnattr_setsigmask(&raw, &none));
    check(::posix_spawnattr_setsigdefault(&raw, &all));
    check(::posix_spawnattr_setpgroup(&raw, 0));
    const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;
    check(::posix_spawnattr_setflags(&raw, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group)));
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { ::posix_spawnattr_destroy(&raw); }

  posix_spawnattr_t raw{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more) {
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!more.contains(std::string{variable.substr(0, variable.find('='))})) variables.emplace_back(variable);
  }
  for (const auto& [name, value] : more) variables.push_back(name + "=" + value);
  return variables;
}

}  // namespace

Spawned spawn(const ProcessRequest& request) {
  Pipe output;
  Pipe errors;
  FileActions actions;
  if (!request.on_terminal)
    check(::posix_spawn_file_actions_addopen(&actions.raw, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
  check(::posix_spawn_file_actions_adddup2(&actions.raw, output.writing, STDOUT_FILENO));
  if (!request.shows_errors) check(::posix_spawn_file_actions_adddup2(&actions.raw, errors.writing, STDERR_FILENO));
  // Asio's sockets are not marked close-on-exec, and the program must not get our connections.
  check(::posix_spawn_file_actions_addclosefrom_np(&actions.raw, STDERR_FILENO + 1));
  const Attributes attributes{!request.on_terminal};

  auto arguments = request.arguments;
  arguments.insert(arguments.begin(), request.command);
  auto variables = environment_with(request.environment);
  Spawned spawned;
  check(::posix_spawnp(&spawned.pid, request.command.c_str(), &actions.raw, &attributes.raw, pointers(arguments).data(),
                       pointers(variables).data()));
  // Only we reap this child, so its pid cannot have been reused yet.
  // The bare call, since glibc 2.36 declares its pidfd_open() in a way that C++ cannot link.
  if (request.use_pidfd) spawned.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, spawned.pid, 0));
  spawned.output = output.release_reading();
  spawned.errors = errors.release_reading();
  return spawned;
}

}  // namespace hubferry::kube
