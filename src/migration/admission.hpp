#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hubferry/async/wait_list.hpp"
#include "migration/migration.hpp"

namespace hubferry::migration {

/// A migration that is not over, as far as it stands in another one's way.
struct Contender {
  std::string uid;
  kube::Key key;
  std::string created;  // RFC 3339: sorts by age
  std::string from;
  std::string to;
  ClusterNames clusters;  // as far as known: those of a placement only once it is resolved
  bool active = false;    // it has begun; else it waits in Pending
};

/// Why each waiting contender has to go on waiting, by uid: a sentence. Who is missing may begin.
///
/// Older ones come first, those that have begun before all. A cluster belongs to at most one at a time, and so do the
/// helper objects on a hub, which are named after the migration: of two with one name in different namespaces that
/// share a hub, one waits.
std::unordered_map<std::string, std::string> find_obstacles(std::vector<const Contender*> contenders,
                                                            std::size_t most_active);

/// Who may begin when: keeps clusters from belonging to two migrations, and the number of migrations in bounds.
///
/// It learns of migrations from the cache. A migration that begins is active from that moment on, whatever the cache
/// says, until the cache shows its end.
/// Executor: one loop. Cancellation of the waits: terminal.
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
  /// Names the clusters of an active migration. Where one of them belongs to another active migration: the sentence
  /// that says so, and this one waits again.
  [[nodiscard]] std::optional<std::string> claim(const std::string& uid, ClusterNames clusters);
  /// What a predecessor of this process claimed, as found in the API.
  void restore(const std::string& uid, ClusterNames clusters);
  /// It has ended and begins again, to undo more. Absent: it is active now; else who stands in its way.
  [[nodiscard]] std::optional<std::string> begin_again(const Migration& migration, ClusterNames clusters);

  /// Waits for a change of what stands in others' ways.
  async::Awaitable<> changed();

 private:
  [[nodiscard]] std::optional<std::string> holder_sentence(const std::string& uid, const ClusterNames& clusters) const;
  void changes();

  std::size_t most_active_;
  std::map<std::string, Contender> contenders_;
  std::optional<std::unordered_map<std::string, std::string>> obstacles_;  // absent: to be found anew
  async::WaitList waiters_;
};

}  // namespace hubferry::migration
