#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "hubferry/klusterlet/local_store.hpp"

namespace hubferry::perf {

inline constexpr const char* agent_name = "perf";
std::string cluster_name(int number);

/// What a hub's process and ours share.
struct HubPage {
  std::atomic<std::uint64_t> total;                         // requests of agents so far
  std::atomic<std::uint32_t> second;                        // since the hub was ready
  std::array<std::atomic<std::uint32_t>, 4000> per_second;  // requests of agents in each
  std::atomic<int> faults;                                  // 1: answer some requests with 429 and 500
};

/// A simulated hub with its controllers, which serves agents over TLS, in a process of its own.
class HubProcess {
 public:
  /// `joined`: the clusters' agents have credentials already.
  HubProcess(const std::string& name, int clusters, bool joined);
  ~HubProcess();
  HubProcess(const HubProcess&) = delete;
  HubProcess& operator=(const HubProcess&) = delete;

  void wait_ready();
  void kill();

  const std::string& url() const { return url_; }
  klusterlet::BootstrapConfig bootstrap() const { return bootstrap_; }
  /// Hands it over: it is kept here only until then.
  klusterlet::HubSecret secret(int number) { return std::move(secrets_[static_cast<std::size_t>(number)]); }
  HubPage& page() { return *page_; }

  /// Where the memory of agents begins.
  void mark_memory();
  double memory_before() const { return memory_before_; }
  double resident_before() const { return resident_before_; }

 private:
  [[noreturn]] void serve(const std::string& name, int clusters, bool joined, int output);

  HubPage* page_;
  pid_t process_ = -1;
  int input_ = -1;
  std::string url_;
  klusterlet::BootstrapConfig bootstrap_;
  std::vector<klusterlet::HubSecret> secrets_;
  double memory_before_ = 0;
  double resident_before_ = 0;
};

}  // namespace hubferry::perf
