#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "hubferry/hubagent/migration_ref.hpp"

namespace hubferry::hubagent {

/// What operations wait for at this moment, for each cluster of a migration: so that nobody has to guess.
/// Executor: the control loop. Lifetime: outlives its entries.
class Waits {
  struct Reason {
    std::string what;
    bool is_early = false;
  };
  /// By the migration's uid and by cluster. Two operations may wait for the same cluster.
  using Entries = std::multimap<std::pair<std::string, std::string>, Reason>;

 public:
  /// While it lives, the cluster waits for this; without a cluster: the migration does. `is_early`: the operation has
  /// begun before the cluster can be that far; as long as it waits for something else too, that is what has to be
  /// known.
  class [[nodiscard]] Entry {
   public:
    Entry(Waits& waits, std::string migration, std::string cluster, std::string what, bool is_early = false)
        : entries_(waits.entries_),
          place_(entries_.emplace(std::pair{std::move(migration), std::move(cluster)},
                                  Reason{std::move(what), is_early})) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { entries_.erase(place_); }
    /// It waits for something else now.
    void replace(std::string what) { place_->second.what = std::move(what); }

   private:
    Entries& entries_;
    Entries::iterator place_;
  };

  /// The clusters of a migration by what they wait for. `elsewhere`: those that wait for something that is not known
  /// here.
  [[nodiscard]] std::map<std::string, ClusterNames> of(const std::string& migration,
                                                       const std::set<std::string>& elsewhere = {}) const {
    std::map<std::string, ClusterNames> found;
    auto entry = entries_.lower_bound({migration, {}});
    while (entry != entries_.end() && entry->first.first == migration) {
      const auto& cluster = entry->first.second;
      const auto end = entries_.upper_bound(entry->first);
      const bool has_other =
          elsewhere.contains(cluster) || std::any_of(entry, end, [](const auto& one) { return !one.second.is_early; });
      for (; entry != end; ++entry)
        if (!entry->second.is_early || !has_other) found[entry->second.what].push_back(entry->first.second);
    }
    return found;
  }

 private:
  Entries entries_;
};

}  // namespace hubferry::hubagent
