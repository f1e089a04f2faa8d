#include "app/demo/mysql/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace hubferry::app {

namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Options& options) {
  // From util-linux, so on every Debian.
  std::vector<std::string> all{"setpriv", "--pdeathsig", "KILL", "--"};
  all.insert(all.end(), command.begin(), command.end());
  auto environment = options.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    // Of two values a shell takes one, and the C library the other.
    const std::string_view inherited{*variable};
    const auto name = inherited.substr(0, inherited.find('=') + 1);
    const bool is_given =
        std::ranges::any_of(options.environment, [&](const auto& own) { return own.starts_with(name); });
    if (!is_given) environment.emplace_back(inherited);
  }
  auto arguments = pointers_to(all);
  auto variables = pointers_to(environment);
  const char* log = options.log.empty() ? "/dev/null" : options.log.c_str();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // Our signals are blocked for the thread that waits for them; and Ctrl-C is for us alone.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int failure = posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == 0) return;
  pid_ = -1;
  throw std::runtime_error("cannot start " + command.at(0) + ": " + std::strerror(failure));
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  signal(SIGKILL);
  wait();
}

bool ChildProcess::running() {
  int status = 0;
  if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_) exit_code_ = exit_code_of(status);
  return !exit_code_;
}

void ChildProcess::signal(int number) {
  if (running()) ::kill(pid_, number);
}

int ChildProcess::wait() {
  int status = 0;
  while (!exit_code_)
    if (waitpid(pid_, &status, 0) == pid_) exit_code_ = exit_code_of(status);
  return *exit_code_;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream directories{(path == nullptr ? std::string{} : std::string{path} + ":") + "/usr/sbin:/sbin"};
  for (std::string directory; std::getline(directories, directory, ':');) {
    auto file = directory + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

}  // namespace hubferry::app
