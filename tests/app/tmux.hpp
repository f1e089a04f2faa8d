#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {

/// A terminal for tests: a private tmux that runs one command and captures its screen.
class Tmux {
 public:
  Tmux(const std::string& command, int width, int height) {
    // The shell around it outlives Ctrl-C, so that the last picture stays, and the end can be seen.
    const auto script = "trap : INT; " + command + "; echo \"[ended with $?]\"; while :; do sleep 600; done";
    run({"-f", "/dev/null", "new-session", "-d", "-x", std::to_string(width), "-y", std::to_string(height), script});
  }
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;
  ~Tmux() { run({"kill-server"}); }

  /// What a person sees. `with_colours`: with the escape sequences that paint it.
  std::string screen(bool with_colours = false) {
    std::vector<std::string> words{"capture-pane", "-p"};
    if (with_colours) words.emplace_back("-e");
    return run(words);
  }
  /// Waits until the screen is as wanted, and returns it.
  std::string await(const std::function<bool(const std::string&)>& wanted) {
    const auto give_up = std::chrono::steady_clock::now() + Process::timeout;
    for (;;) {
      auto seen = screen();
      if (wanted(seen)) return seen;
      if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("waited in vain; the screen:\n" + seen);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  std::string await_text(const std::string& text) {
    return await([&](const std::string& seen) { return seen.find(text) != std::string::npos; });
  }
  void press(const std::string& key) { run({"send-keys", key}); }

 private:
  std::string run(std::vector<std::string> words) {
    words.insert(words.begin(), {"tmux", "-S", directory_.file("socket")});
    Process process{words, {.environment = {"TERM=screen-256color", "LC_ALL=C.UTF-8"}, .error_fd = {}}};
    process.wait();
    return process.out();
  }

  TemporaryDirectory directory_;
};

/// How often `text` is in `whole`.
inline std::size_t count_of(const std::string& whole, const std::string& text) {
  std::size_t count = 0;
  for (auto at = whole.find(text); at != std::string::npos; at = whole.find(text, at + text.size())) ++count;
  return count;
}

}  // namespace hubferry::test
