#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "hubferry/async/loops.hpp"
#include "hubferry/kube/http_api.hpp"
#include "load_counts.hpp"
#include "load_options.hpp"
#include "support/process.hpp"

namespace hubferry::perf {

/// CPU and memory of a process, from /proc.
struct ProcessFigures {
  double cpu_seconds = 0;
  double resident = 0;       // bytes
  double peak_resident = 0;  // bytes
};
ProcessFigures figures_of(pid_t process);

/// What clients need; outlives them.
struct LoadEnv {
  async::RealClock clock;
  async::Random random = async::Random::from_entropy();
  obs::Metrics metrics;
  async::LoopPool loops{std::max(1U, std::thread::hardware_concurrency())};

  kube::Env env() { return {clock, random, metrics, {}}; }
};

/// `hubferry sim` in a process of its own, and a client for each of its servers.
class Simulator {
 public:
  /// Waits until it is ready; prints how long that took. Throws std::runtime_error.
  /// `agents`: each cluster has one.
  Simulator(const LoadOptions& options, const std::filesystem::path& directory, bool agents, LoadEnv& env);

  kube::Api& api(const std::string& server) { return *apis_.at(server); }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] const std::filesystem::path& kubeconfig() const { return global_; }
  /// What the servers have counted so far.
  async::Awaitable<std::map<std::string, Scrape>> scrape();

 private:
  std::filesystem::path global_;
  std::unique_ptr<test::Process> process_;
  std::map<std::string, std::unique_ptr<kube::Api>> apis_;
};

/// `hubferry manager` in a process of its own.
class Manager {
 public:
  Manager(const LoadOptions& options, const std::filesystem::path& directory, const Simulator& simulator, LoadEnv& env);

  /// With SIGKILL.
  void kill() { process_.reset(); }
  /// Starts a successor.
  void replace();

  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  bool running() { return process_->running(); }
  async::Awaitable<> wait_ready();
  async::Awaitable<Scrape> scrape();

 private:
  LoadEnv& env_;
  std::vector<std::string> command_;
  std::filesystem::path directory_;
  std::unique_ptr<test::Process> process_;
  std::unique_ptr<kube::Api> metrics_;
  std::unique_ptr<kube::Api> health_;
};

}  // namespace hubferry::perf
