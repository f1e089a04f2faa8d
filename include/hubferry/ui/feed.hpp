#pragma once

#include <map>
#include <set>
#include <string>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/ui/console.hpp"

namespace hubferry::ui {

/// Puts the migrations of a global hub into a Console, by an informer: nothing is polled. A migration's ledger is read
/// when its status shows that the ledger was written. Clusters that arrive are not in the ledger before all have: the
/// controller reports them to Console::arrive() (migration::ControllerOptions::on_arrival).
///
/// Executor: the control loop. Lifetime: `global` and `console` outlive run().
class Feed {
 public:
  Feed(kube::Api& global, Console& console, std::string watch_namespace, kube::Env env);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Until cancelled.
  async::Awaitable<> run();

 private:
  void changed(const kube::Key& key, const std::shared_ptr<const kube::Object>& now);
  async::Awaitable<> read_ledgers();
  async::Awaitable<bool> read_ledger(kube::Key key);

  kube::Api& global_;
  Console& console_;
  kube::Env env_;
  kube::Cache<kube::Object> migrations_;
  std::map<kube::Key, std::string> known_;  // what the status said when the ledger was last requested
  std::set<kube::Key> to_read_;
  async::Notify more_to_read_;
};

}  // namespace hubferry::ui
