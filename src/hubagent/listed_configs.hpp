#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "hubagent/turn.hpp"
#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

class Hub;

/// The KlusterletAddonConfigs of a source, by one list of the whole hub: nearly every cluster has one. For first copies
/// only, while a good part of the hub's clusters is copied at once: what the list says is some seconds old, and the
/// copies are compared with the source, which is read for that, before anything is deleted there.
/// Executor: one loop. Cancellation: a caller that is cancelled leaves the list to the next one.
class ListedConfigs {
 public:
  explicit ListedConfigs(const Hub& hub) : hub_(hub) {}

  /// Clusters that are copied, until destroyed.
  class [[nodiscard]] Use {
   public:
    Use(ListedConfigs& configs, std::size_t clusters) : configs_(configs), clusters_(clusters) {
      configs_.wanted_ += clusters_;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      configs_.wanted_ -= clusters_;
      if (configs_.wanted_ == 0) configs_.texts_.reset();
    }

   private:
    ListedConfigs& configs_;
    std::size_t clusters_;
  };

  struct Answer {
    std::optional<kube::Object> config;  // absent: the cluster has none
  };
  /// Nothing: it must be read. The caller holds a Use.
  async::Awaitable<std::optional<Answer>> of(std::string cluster);

 private:
  using Texts = std::map<std::string, std::string>;  // by namespace; JSON: a tree would take several times as much

  [[nodiscard]] bool is_known() const;
  [[nodiscard]] bool is_worth_it() const;
  async::Awaitable<> list();

  const Hub& hub_;
  std::size_t wanted_ = 0;  // clusters, over all uses
  std::optional<Texts> texts_;
  async::TimePoint until_{};
  async::TimePoint not_before_{};
  Turn turn_;
};

}  // namespace hubferry::hubagent
