#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/klusterlet/local_store.hpp"

namespace hubferry::klusterlet::test {

/// A store on a disk that may be full, or fail altogether. It survives its agent.
class FlakyStore final : public LocalStore {
 public:
  FlakyStore(std::vector<BootstrapConfig> bootstraps, async::Clock& clock)
      : bootstraps_(std::move(bootstraps)), clock_(clock) {}

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  [[nodiscard]] bool takes_bootstraps() const override { return true; }
  Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration>) override {
    for (const auto& entry : list)
      if (entry.name == refused_name) co_return failure();
    if (full) co_return failure();
    set_bootstraps(std::move(list));
    co_return kube::Result<>{};
  }
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override {
    if (unreadable) co_return failure();
    co_return secret_;
  }
  Awaitable<kube::Result<>> save(HubSecret secret) override {
    ++attempts;
    if (slow_until != TimePoint{}) co_await clock_.sleep_until(slow_until);
    if (full) co_return failure();
    secret_ = std::move(secret);
    co_return kube::Result<>{};
  }

  /// As an administrator.
  void set_bootstraps(std::vector<BootstrapConfig> list) {
    if (list == bootstraps_) return;
    bootstraps_ = std::move(list);
    changed();
  }
  [[nodiscard]] const std::optional<HubSecret>& secret() const { return secret_; }

  bool full = false;
  bool unreadable = false;
  unsigned attempts = 0;       // to save
  TimePoint slow_until{};      // a save takes until then
  std::string refused_name{};  // of a hub that cannot be stored

 private:
  static kube::Error failure() {
    kube::Error error;
    error.kind = kube::ErrorKind::retry_later;
    error.message = "no space left on device";
    return error;
  }

  std::vector<BootstrapConfig> bootstraps_;
  async::Clock& clock_;
  std::optional<HubSecret> secret_;
};

}  // namespace hubferry::klusterlet::test
