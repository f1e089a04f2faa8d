#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

/// Tells changes that others made to a resource from the echo of our own status writes, by resourceVersion.
///
/// Our own write is conditional on the version that the machine had read: what it brings back in a watch event is known
/// to the machine. While a machine runs, an event may come before the answer to the write that caused it: so the events
/// of that time are judged when the machine has come to rest.
class OwnWrites {
 public:
  /// A machine starts to run.
  void begin(const Key& key);
  /// Our write was answered with this version.
  void written(const Key& key, std::string_view version);
  /// The machine has read the resource again, after a conflict: what it read may be somebody else's change, which its
  /// handlers have not seen.
  void read(const Key& key, std::string_view version);
  /// A watch event has come. True: somebody else's change, to be reconciled; false: ours, or to be judged later.
  [[nodiscard]] bool event(const Key& key, std::string_view version);
  /// The machine has come to rest. True: somebody else has changed the resource meanwhile.
  [[nodiscard]] bool finish(const Key& key);
  /// The resource is gone.
  void forget(const Key& key);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    bool running = false;
    std::vector<std::string> own;     // written by us, in order, whose events have not all come yet
    std::vector<std::string> events;  // that came while it ran
    std::vector<std::string> reads;   // after conflicts, while it ran
  };

  void drop_if_empty(const Key& key);

  std::unordered_map<Key, Entry> entries_;
};

}  // namespace hubferry::phase
