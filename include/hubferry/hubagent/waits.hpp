#pragma once

#include <map>
#include <string>
#include <utility>

#include "hubferry/hubagent/migration_ref.hpp"

namespace hubferry::hubagent {

/// What operations wait for at this moment, for each cluster of a migration: so that nobody has to guess.
/// Executor: the control loop. Lifetime: outlives its entries.
class Waits {
  /// By the migration's uid and by cluster. Two operations may wait for the same cluster.
  using Entries = std::multimap<std::pair<std::string, std::string>, std::string>;

 public:
  /// While it lives, the cluster waits for this.
  class [[nodiscard]] Entry {
   public:
    Entry(Waits& waits, std::string migration, std::string cluster, std::string what)
        : entries_(waits.entries_),
          place_(entries_.emplace(std::pair{std::move(migration), std::move(cluster)}, std::move(what))) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { entries_.erase(place_); }
    /// It waits for something else now.
    void replace(std::string what) { place_->second = std::move(what); }

   private:
    Entries& entries_;
    Entries::iterator place_;
  };

  /// The clusters of a migration by what they wait for.
  [[nodiscard]] std::map<std::string, ClusterNames> of(const std::string& migration) const {
    std::map<std::string, ClusterNames> found;
    for (auto entry = entries_.lower_bound({migration, {}}); entry != entries_.end() && entry->first.first == migration;
         ++entry)
      found[entry->second].push_back(entry->first.second);
    return found;
  }

 private:
  Entries entries_;
};

}  // namespace hubferry::hubagent
