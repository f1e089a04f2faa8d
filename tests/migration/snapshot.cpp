#include "snapshot.hpp"

#include <boost/json/serialize.hpp>
#include <set>

namespace hubferry::migration::test {

namespace {

namespace json = boost::json;
using kube::Resource;

/// Kinds that change by themselves, or only answer requests.
const std::set<std::string> restless{"leases", "events", "certificatesigningrequests"};

std::vector<Resource> kinds_in(const json::value& list, const std::string& group, const std::string& version,
                               Kinds which) {
  std::vector<Resource> kinds;
  for (const auto& entry : list.at("resources").as_array()) {
    const std::string plural{entry.at("name").as_string()};
    bool listable = false;
    for (const auto& verb : entry.at("verbs").as_array()) listable = listable || verb == "list";
    const bool left_out = which == Kinds::lasting && restless.contains(plural);
    if (!listable || left_out || plural.find('/') != std::string::npos) continue;
    kinds.push_back(
        {group, version, plural, std::string{entry.at("kind").as_string()}, entry.at("namespaced").as_bool()});
  }
  return kinds;
}

}  // namespace

async::Awaitable<std::vector<Resource>> find_kinds(kube::Api& api, Kinds which) {
  auto core = co_await api.get_path("/api/v1");
  auto kinds = kinds_in(core.value(), "", "v1", which);
  auto groups = co_await api.get_path("/apis");
  for (const auto& group : groups.value().at("groups").as_array()) {
    const std::string name{group.at("name").as_string()};
    // Not every kind is served in the preferred version of its group.
    std::set<std::string> seen;
    for (const auto& entry : group.at("versions").as_array()) {
      const std::string version{entry.at("version").as_string()};
      auto list = co_await api.get_path("/apis/" + name + "/" + version);
      for (auto& kind : kinds_in(list.value(), name, version, which))
        if (seen.insert(kind.plural).second) kinds.push_back(std::move(kind));
    }
  }
  co_return kinds;
}

std::string essence(const kube::Object& object) {
  json::object copy = object.json();
  auto& metadata = copy["metadata"].as_object();
  for (const auto* field : {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"})
    metadata.erase(field);
  copy.erase("status");
  return json::serialize(copy);
}

async::Awaitable<Snapshot> take_snapshot(kube::Api& api) {
  Snapshot snapshot;
  auto kinds = co_await find_kinds(api, Kinds::lasting);
  for (const auto& kind : kinds) {
    kube::ListOptions all;
    auto objects = co_await api.list_all(kind, all);
    for (const auto& object : objects.value())
      snapshot[kind.display_name() + " " + kube::to_string(object.key())] = essence(object);
  }
  co_return snapshot;
}

Snapshot without(Snapshot snapshot, const std::vector<std::string>& leave_out) {
  for (const auto& part : leave_out)
    std::erase_if(snapshot, [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
  return snapshot;
}

bool belongs_to(const std::string& key, const std::string& cluster) {
  const auto found = key.find(cluster);
  if (found == std::string::npos) return false;
  // cluster-1 is not cluster-10.
  const auto after = found + cluster.size();
  return after == key.size() || std::isalnum(static_cast<unsigned char>(key[after])) == 0;
}

std::string differences(const Snapshot& expected, const Snapshot& actual) {
  std::string text;
  for (const auto& [key, value] : expected) {
    const auto found = actual.find(key);
    if (found == actual.end()) {
      text += "missing: " + key + "\n";
    } else if (found->second != value) {
      text += "changed: " + key + "\n  was " + value + "\n  is  " + found->second + "\n";
    }
  }
  for (const auto& [key, value] : actual)
    if (!expected.contains(key)) text += "left: " + key + " " + value.substr(0, 300) + "\n";
  return text;
}

}  // namespace hubferry::migration::test
