#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent_world.hpp"
#include "hubferry/async/event.hpp"

// What a world consists of, and what its steps do to it.
namespace hubferry::klusterlet::worlds {

/// How often the invariants are checked.
inline constexpr auto tick = 5s;

inline std::string cluster_name(std::size_t agent) {
  return "cluster" + std::to_string(agent);
}

/// The clock of one machine, and of the process on it: what a stopped process waits for is late.
class MachineClock final : public async::Clock {
 public:
  explicit MachineClock(async::Clock& inner) : inner_(inner) {}
  [[nodiscard]] async::TimePoint now() const override { return inner_.now(); }
  [[nodiscard]] async::WallTime wall_now() const override { return inner_.wall_now() + skew_; }
  async::Awaitable<> sleep_until(async::TimePoint when) override {
    co_await inner_.sleep_until(when);
    while (inner_.now() < stopped_until_) co_await inner_.sleep_until(stopped_until_);
  }
  void set(Duration skew) { skew_ = skew; }
  void stop_until(async::TimePoint when) { stopped_until_ = when; }
  [[nodiscard]] async::TimePoint stopped_until() const { return stopped_until_; }

 private:
  async::Clock& inner_;
  Duration skew_{0};
  async::TimePoint stopped_until_{};
};

struct Machine {
  Machine(std::size_t which, std::vector<BootstrapConfig> list, const kube::Env& env)
      : index(which),
        configured(list),
        store(std::move(list), env.clock),
        clock(env.clock),
        random(env.random.fork()) {}

  std::size_t index;
  std::vector<BootstrapConfig> configured;  // as the administrator wants it
  std::map<std::size_t, int> removed;       // hubs that are out of the list, by how many steps
  std::map<std::size_t, int> broken;        // entries that are unparsable
  int full = 0;
  int dead = 0;
  int killed = 0;
  async::TimePoint started{};
  bool disk_failed = false;  // at least once: what is on it may be old
  async::TimePoint unreadable_since{};
  const Agent* process = nullptr;  // that runs on it
  test::FlakyStore store;
  MachineClock clock;
  async::Random random;
  async::Event kill;
  async::Event revive;
};

struct SimulatedHub {
  SimulatedHub(const std::string& name, const kube::Env& env)
      : server(
            [&] {
              sim::Options options;
              options.name = name;
              // Nothing here depends on them, and they are most of what an idle world does.
              options.bookmark_interval = 1h;
              return options;
            }(),
            env),
        url("https://" + name + ".example:6443") {}

  /// All faults at once: they are told apart by how many steps want them.
  void apply_faults();

  sim::Server server;
  std::string url;
  BootstrapConfig bootstrap;
  std::optional<sim::HubControllers> controllers;
  int outages = 0;
  int revocations = 0;
  std::map<std::size_t, int> faults;
  std::map<std::size_t, int> denials;  // by agent
  std::vector<kube::Object> bindings;  // of the bootstrap account, while they are revoked
};

}  // namespace hubferry::klusterlet::worlds
