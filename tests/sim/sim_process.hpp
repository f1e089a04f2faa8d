#pragma once

#include <gmock/gmock.h>

#include <fstream>

#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {

/// What a command printed, and how it ended.
struct Ran {
  int code = -1;
  std::string output;
};

/// Real kubectl; `words` is split by the shell.
inline Ran run_kubectl(const std::string& kubeconfig, const std::string& home, const std::string& words) {
  Process ran{{"sh", "-c", "kubectl " + words + " 2>&1"},
              {.environment = {"HOME=" + home, "KUBECONFIG=" + kubeconfig}}};
  const int code = ran.wait();
  return {code, ran.out()};
}

/// A running `hubferry sim`.
class SimProcess {
 public:
  explicit SimProcess(const std::vector<std::string>& more_flags) : process_(command(directory_.path(), more_flags)) {
    process_.await_error_text("\"ready\"");
  }

  static std::vector<std::string> command(const std::string& directory, const std::vector<std::string>& more_flags) {
    std::vector<std::string> words{hubferry_binary(), "sim", "--kubeconfig-dir", directory + "/k", "--log-format=json"};
    words.insert(words.end(), more_flags.begin(), more_flags.end());
    return words;
  }

  Process& process() { return process_; }
  [[nodiscard]] std::string kubeconfig(const std::string& server) const {
    return directory_.file("k/") + server + ".kubeconfig";
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    const auto path = directory_.file(name);
    std::ofstream{path} << text;
    return path;
  }
  [[nodiscard]] Ran kubectl(const std::string& server, const std::string& words) const {
    return run_kubectl(kubeconfig(server), directory_.path(), words);
  }
  std::string must(const std::string& server, const std::string& words) const {
    const auto ran = kubectl(server, words);
    EXPECT_EQ(ran.code, 0) << "kubectl " << words << "\n" << ran.output;
    return ran.output;
  }
  int stop() {
    process_.signal(SIGTERM);
    return process_.wait();
  }

 private:
  TemporaryDirectory directory_;
  Process process_;
};

}  // namespace hubferry::test
