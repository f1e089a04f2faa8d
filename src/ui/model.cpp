#include "ui/model.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::ui {

namespace {

// A cluster passes four states; a retried migration some more.
constexpr std::size_t longest_history = 12;

std::string event(std::string_view name, const json::object& content) {
  std::string text{"event: "};
  text += name;
  text += "\ndata: ";
  text += json::serialize(content);  // one line: it escapes control characters
  text += "\n\n";
  return text;
}

}  // namespace

std::int64_t milliseconds(async::WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

void Model::put(const kube::Object& migration, async::WallTime now) {
  const auto key = kube::to_string(migration.key());
  const std::string phase{migration.string_at({"status", "phase"})};
  auto& entry = entries_[key];
  if (entry.uid != migration.uid()) {
    entry = Entry{};
    entry.uid = migration.uid();
    // Above those of an earlier one of this name, of which a page may still have the clusters.
    entry.version = ++lives_ << 32U;
    entry.replaced = true;
  }
  if (const auto created = migration::read_creation_time(migration)) entry.created = milliseconds(*created);
  entry.shown = describe_(migration, now);
  entry.shown_changed = true;
  if (const auto spec = migration::read_spec(migration.json()); entry.clusters.empty() && spec.clusters)
    set_names(entry, *spec.clusters);
  const bool working = migration::is_active(phase) && phase != migration::phases::validating;
  entry.working = working;
  for (std::size_t place = 0; place < entry.clusters.size(); ++place) set_state(entry, place, now);
  removed_.erase(key);
  dirty_.insert(key);
}

void Model::remove(const kube::Key& migration) {
  const auto key = kube::to_string(migration);
  if (entries_.erase(key) == 0) return;
  dirty_.erase(key);
  removed_.insert(key);
}

void Model::set_names(Entry& entry, const std::vector<std::string>& names) {
  entry.clusters.clear();
  entry.places.clear();
  entry.changed.clear();
  entry.replaced = true;
  for (const auto& name : names) {
    entry.places.emplace(name, entry.clusters.size());
    auto& cluster = entry.clusters.emplace_back();
    cluster.record.name = name;
  }
}

void Model::put_clusters(const kube::Key& migration, const std::string& uid,
                         const std::vector<migration::ClusterRecord>& records, async::WallTime now) {
  const auto found = entries_.find(kube::to_string(migration));
  if (found == entries_.end() || found->second.uid != uid) return;
  auto& entry = found->second;
  const auto same = [](const Cluster& cluster, const migration::ClusterRecord& record) {
    return cluster.record.name == record.name;
  };
  if (!std::equal(entry.clusters.begin(), entry.clusters.end(), records.begin(), records.end(), same)) {
    std::vector<std::string> names;
    for (const auto& record : records) names.push_back(record.name);
    set_names(entry, names);
  }
  for (std::size_t place = 0; place < records.size(); ++place) {
    auto& known = entry.clusters[place].record;
    // The ledger is written after the arrivals.
    const bool arrived = records[place].arrived || (known.arrived && !records[place].failed);
    known = records[place];
    known.arrived = arrived;
    set_state(entry, place, now);
  }
  dirty_.insert(found->first);
}

void Model::arrive(const kube::Key& migration, const std::string& cluster, async::WallTime now) {
  const auto found = entries_.find(kube::to_string(migration));
  if (found == entries_.end()) return;
  auto& entry = found->second;
  const auto place = entry.places.find(cluster);
  if (place == entry.places.end()) return;
  entry.clusters[place->second].record.arrived = true;
  set_state(entry, place->second, now);
  dirty_.insert(found->first);
}

void Model::set_state(Entry& entry, std::size_t place, async::WallTime now) {
  auto& cluster = entry.clusters[place];
  const auto& record = cluster.record;
  auto state = entry.working ? ClusterState::migrating : ClusterState::pending;
  if (record.arrived)
    state = ClusterState::migrated;
  else if (record.rolled_back)
    state = ClusterState::rolled_back;
  else if (record.failed)
    state = ClusterState::failed;
  const bool first = cluster.history.empty();
  if (!first && cluster.state == state) return;
  cluster.state = state;
  // What it was when we first looked began earlier, unless it still is what it was created as.
  auto since = milliseconds(now);
  if (first) since = state == ClusterState::pending ? entry.created : 0;
  if (cluster.history.size() < longest_history) cluster.history.emplace_back(state, since);
  if (!entry.replaced) entry.changed.insert(place);
}

void Model::put_hubs(json::array hubs) {
  if (hubs_ == hubs) return;
  hubs_ = std::move(hubs);
  hubs_changed_ = true;
}

std::string_view Model::name_of(ClusterState state) {
  switch (state) {
    case ClusterState::pending:
      return "pending";
    case ClusterState::migrating:
      return "migrating";
    case ClusterState::migrated:
      return "migrated";
    case ClusterState::failed:
      return "failed";
    case ClusterState::rolled_back:
      return "rolledBack";
  }
  return "pending";
}

/// Each cluster counts once, unlike in the status, where those that were rolled back are also among the failed ones.
json::object Model::counts(const Entry& entry) {
  std::map<ClusterState, std::int64_t> by_state;
  for (const auto& cluster : entry.clusters) ++by_state[cluster.state];
  json::object counts{{"total", entry.clusters.size()}};
  for (const auto state : {ClusterState::pending, ClusterState::migrating, ClusterState::migrated, ClusterState::failed,
                           ClusterState::rolled_back})
    counts[name_of(state)] = by_state[state];
  return counts;
}

json::object Model::shown(const Entry& entry) {
  auto migration = entry.shown;
  if (!entry.clusters.empty()) migration["counts"] = counts(entry);
  return migration;
}

json::object Model::snapshot(async::WallTime now) const {
  json::array migrations;
  for (const auto& [key, entry] : entries_) migrations.push_back(shown(entry));
  return {{"now", milliseconds(now)}, {"about", about_}, {"migrations", std::move(migrations)}, {"hubs", hubs_}};
}

std::optional<json::object> Model::clusters(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  json::array names;
  std::string states;
  for (const auto& cluster : found->second.clusters) {
    names.emplace_back(cluster.record.name);
    states += static_cast<char>(cluster.state);
  }
  return json::object{
      {"key", key}, {"version", found->second.version}, {"names", std::move(names)}, {"states", std::move(states)}};
}

std::optional<json::object> Model::cluster(const std::string& key, const std::string& name) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  const auto place = found->second.places.find(name);
  if (place == found->second.places.end()) return std::nullopt;
  const auto& cluster = found->second.clusters[place->second];
  json::array history;
  for (const auto& [state, since] : cluster.history)
    history.push_back(json::object{{"state", name_of(state)}, {"since", since}});
  return json::object{{"key", key},
                      {"name", name},
                      {"state", name_of(cluster.state)},
                      {"stage", cluster.record.stage},
                      {"reason", cluster.record.reason},
                      {"message", cluster.record.message},
                      {"waiting", cluster.record.waiting},
                      {"history", std::move(history)}};
}

std::vector<std::string> Model::take_events(async::WallTime now) {
  std::vector<std::string> events;
  for (const auto& key : removed_) events.push_back(event("removed", {{"key", key}}));
  for (const auto& key : dirty_) {
    auto& entry = entries_.at(key);
    if (entry.shown_changed) events.push_back(event("migration", {{"now", milliseconds(now)}, {"it", shown(entry)}}));
    if (entry.replaced || !entry.changed.empty()) {
      ++entry.version;
      json::object changes;
      for (const auto place : entry.changed) {
        const auto& cluster = entry.clusters[place];
        auto& places = changes[std::string(1, static_cast<char>(cluster.state))];
        if (!places.is_array()) places = json::array{};
        places.get_array().emplace_back(place);
      }
      json::object content{{"now", milliseconds(now)}, {"key", key}, {"version", entry.version}};
      if (!entry.clusters.empty()) content["counts"] = counts(entry);
      if (entry.replaced)
        content["replaced"] = true;
      else
        content["changes"] = std::move(changes);
      events.push_back(event("clusters", content));
    }
    entry.shown_changed = false;
    entry.replaced = false;
    entry.changed.clear();
  }
  if (hubs_changed_) events.push_back(event("hubs", {{"now", milliseconds(now)}, {"hubs", hubs_}}));
  dirty_.clear();
  removed_.clear();
  hubs_changed_ = false;
  return events;
}

}  // namespace hubferry::ui
