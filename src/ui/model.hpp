#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/migration/cluster_record.hpp"
#include "hubferry/ui/console.hpp"

namespace hubferry::ui {

namespace json = boost::json;

/// What the page shows: the migrations, their clusters and the hubs, as JSON. Without I/O.
///
/// A viewer gets a snapshot() and from then on every event of take_events(). Clusters are not part of it, since a
/// migration has thousands: a viewer reads clusters() of the migrations it shows, and applies the events `clusters`
/// whose version is higher. They address a cluster by its place in that list.
/// Executor: one loop.
class Model {
 public:
  Model(Describe describe, json::object about) : describe_(std::move(describe)), about_(std::move(about)) {}

  void put(const kube::Object& migration, async::WallTime now);
  void remove(const kube::Key& migration);
  /// `uid`: of the migration that the ledger belongs to.
  void put_clusters(const kube::Key& migration, const std::string& uid,
                    const std::vector<migration::ClusterRecord>& records, async::WallTime now);
  void arrive(const kube::Key& migration, const std::string& cluster, async::WallTime now);
  void put_hubs(json::array hubs);

  [[nodiscard]] json::object snapshot(async::WallTime now) const;
  /// {"key", "version", "names": [...], "states": "mmd…"}: one letter for each name, see ClusterState. Null: no such
  /// migration.
  [[nodiscard]] std::optional<json::object> clusters(const std::string& key) const;
  /// One cluster with its reason and history. Null: there is none.
  [[nodiscard]] std::optional<json::object> cluster(const std::string& key, const std::string& name) const;

  /// What changed since the last call, as server-sent events.
  std::vector<std::string> take_events(async::WallTime now);
  [[nodiscard]] bool changed() const { return !dirty_.empty() || !removed_.empty() || hubs_changed_; }

 private:
  enum class ClusterState : char {
    pending = 'p',
    migrating = 'm',
    migrated = 'd',
    failed = 'f',
    rolled_back = 'r',
  };
  struct Cluster {
    migration::ClusterRecord record;
    ClusterState state = ClusterState::pending;
    std::vector<std::pair<ClusterState, std::int64_t>> history;  // since when, in ms; 0: before we looked
  };
  struct Entry {
    std::string uid;
    bool working = false;  // clusters that have neither arrived nor failed count as migrating
    std::int64_t created = 0;
    json::object shown;
    std::vector<Cluster> clusters;  // by name
    std::unordered_map<std::string, std::size_t> places;
    std::uint64_t version = 0;
    std::set<std::size_t> changed;  // their states, since the last event
    bool replaced = false;          // the whole list, since the last event
    bool shown_changed = false;
  };

  static void set_names(Entry& entry, const std::vector<std::string>& names);
  static void set_state(Entry& entry, std::size_t place, async::WallTime now);
  static json::object counts(const Entry& entry);
  static std::string_view name_of(ClusterState state);
  static json::object shown(const Entry& entry);

  Describe describe_;
  json::object about_;
  std::map<std::string, Entry> entries_;  // by "namespace/name"
  std::uint64_t lives_ = 0;               // of migrations, counted
  std::set<std::string> dirty_;
  std::set<std::string> removed_;
  json::array hubs_;
  bool hubs_changed_ = false;
};

/// A time for JavaScript: milliseconds since 1970.
std::int64_t milliseconds(async::WallTime time);

}  // namespace hubferry::ui
