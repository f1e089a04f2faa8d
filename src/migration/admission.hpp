#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hubferry/async/wait_list.hpp"
#include "migration/migration.hpp"

namespace hubferry::migration {

/// A migration that has not ended, as far as others may have to wait for it.
struct Contender {
  std::string uid;
  kube::Key key;
  std::string created;  // RFC 3339: sorts by age
  std::string from;
  std::string to;
  ClusterNames clusters;    // as far as known: those of a placement only once it is resolved
  bool active = false;      // admitted; else it waits, in Pending or, if it has to be readmitted, in Rollbacking
  bool rolls_back = false;  // it waits to be readmitted
  /// Its rollback or cleanup is pending: it keeps its clusters, and leaves its slot to others meanwhile.
  bool parked = false;
};

/// What each waiting contender waits for, by uid: a message. One without an entry may begin.
///
/// Active ones come first, then older ones. A cluster belongs to at most one migration at a time, and so do the
/// migration's own objects on a hub, which have its name: of two migrations with one name in different namespaces that
/// share a hub, one waits.
std::unordered_map<std::string, std::string> find_obstacles(std::vector<const Contender*> contenders,
                                                            std::size_t most_active);

/// Decides when a migration may begin: no cluster belongs to two migrations, and only so many run at once.
///
/// It reads migrations from the cache. One that begins is active from that moment on, whatever the cache says, until
/// the cache shows its end. Executor: one loop. Cancellation of the waits: terminal.
class Admission {
 public:
  explicit Admission(std::size_t most_active) : most_active_(most_active) {}

  /// A migration as the cache has it now.
  void see(const Migration& migration);
  void forget(const std::string& uid);

  /// Why it cannot begin now; absent: it may.
  [[nodiscard]] std::optional<std::string> obstacle(const std::string& uid);
  /// It begins.
  void begin(const std::string& uid);
  /// Sets the clusters of an active migration. If one of them belongs to another active migration, it waits again, and
  /// the message says for what.
  [[nodiscard]] std::optional<std::string> claim(const std::string& uid, ClusterNames clusters);
  /// The clusters of a migration that a previous process admitted, as its ledger has them.
  void restore(const std::string& uid, ClusterNames clusters);
  /// For one that has ended and rolls back once more. Absent: it is active now; else what it has to wait for.
  [[nodiscard]] std::optional<std::string> readmit(const Migration& migration, ClusterNames clusters);

  /// Waits until that migration, which obstacle() or readmit() has refused with `message`, may begin or has to wait for
  /// something else. The others that wait are not woken.
  async::Awaitable<> changed(std::string uid, std::string message);

 private:
  /// A migration inside changed().
  struct Waiter {
    std::string uid;
    std::string message;
    async::WaitList woken;
  };

  [[nodiscard]] std::optional<std::string> holder_message(const std::string& uid, const ClusterNames& clusters);
  /// What a rollback has to wait for.
  [[nodiscard]] std::optional<std::string> readmission_obstacle(const std::string& uid, const ClusterNames& clusters);
  [[nodiscard]] std::optional<std::string> verdict(const std::string& uid);
  void changes();

  std::size_t most_active_;
  std::map<std::string, Contender> contenders_;
  std::optional<std::unordered_map<std::string, std::string>> obstacles_;  // absent: to be found anew
  /// The active contenders by cluster; absent: to be found anew.
  std::optional<std::unordered_multimap<std::string, const Contender*>> holders_;
  std::list<Waiter*> waiters_;
};

}  // namespace hubferry::migration
