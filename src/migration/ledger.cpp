#include "migration/ledger.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/edit.hpp"

namespace hubferry::migration {

namespace {

constexpr std::size_t longest_detail = 200;
// A server takes 1 MiB in all.
constexpr std::size_t most_bytes = 900UL * 1024;

template <typename Names>
std::string list(const Names& names) {
  json::array array;
  for (const auto& name : names) array.emplace_back(name);
  return json::serialize(array);
}

json::value parsed(const json::object& data, std::string_view key) {
  boost::system::error_code error;
  auto value = json::parse(std::string{kube::string_at(data, {key})}, error);
  return error ? json::value{} : value;
}

/// The names as places in `all`, from and to: "[[0,4999]]" where a list of thousands would not fit any more.
std::string ranges(const std::set<std::string>& names, const ClusterNames& all) {
  json::array array;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (!names.contains(all[at])) continue;
    const auto first = at;
    while (at + 1 < all.size() && names.contains(all[at + 1])) ++at;
    array.push_back(json::array{first, at});
  }
  return json::serialize(array);
}

std::set<std::string> read_set(const json::object& data, std::string_view key, const ClusterNames& all) {
  std::set<std::string> names;
  const auto value = parsed(data, key);
  if (!value.is_array()) return names;
  for (const auto& entry : value.get_array()) {
    if (entry.is_string()) names.emplace(entry.get_string());
    if (!entry.is_array() || entry.get_array().size() != 2) continue;
    const auto& range = entry.get_array();
    if (!range[0].is_int64() || !range[1].is_int64() || range[0].get_int64() < 0) continue;
    const auto last = std::min(range[1].get_int64(), static_cast<std::int64_t>(all.size()) - 1);
    for (auto at = range[0].get_int64(); at <= last; ++at) names.insert(all[static_cast<std::size_t>(at)]);
  }
  return names;
}

std::string details(const std::map<std::string, Failure>& failures, std::size_t message_limit) {
  json::object all;
  for (const auto& [cluster, failure] : failures) {
    json::object entry{{"stage", failure.stage}, {"reason", failure.reason}};
    if (message_limit > 0) entry["message"] = phase::shortened(failure.message, message_limit);
    all.emplace(cluster, std::move(entry));
  }
  return json::serialize(all);
}

/// Each stage and reason once, with the places of its clusters.
std::string grouped_details(const std::map<std::string, Failure>& failures, const ClusterNames& all) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> groups;
  for (const auto& [cluster, failure] : failures) groups[{failure.stage, failure.reason}].insert(cluster);
  json::array array;
  for (const auto& [group, clusters] : groups)
    array.push_back(
        json::object{{"stage", group.first}, {"reason", group.second}, {"clusters", ranges(clusters, all)}});
  return json::serialize(array);
}

/// What details() or grouped_details() wrote.
std::map<std::string, Failure> read_details(const json::object& data, const ClusterNames& all) {
  std::map<std::string, Failure> failures;
  const auto failure_in = [](const json::object& entry) {
    return Failure{std::string{kube::string_at(entry, {"stage"})}, std::string{kube::string_at(entry, {"reason"})},
                   std::string{kube::string_at(entry, {"message"})}};
  };
  const auto value = parsed(data, "failure-details");
  if (value.is_object())
    for (const auto& entry : value.get_object())
      if (entry.value().is_object()) failures[entry.key()] = failure_in(entry.value().get_object());
  if (value.is_array())
    for (const auto& group : value.get_array()) {
      if (!group.is_object()) continue;
      for (const auto& cluster : read_set(group.get_object(), "clusters", all))
        failures[cluster] = failure_in(group.get_object());
    }
  return failures;
}

std::size_t bytes_in(const json::object& data) {
  std::size_t bytes = 0;
  for (const auto& entry : data) bytes += entry.key().size() + entry.value().get_string().size();
  return bytes;
}

kube::Error foreign(const Migration& migration) {
  kube::Error error;
  error.kind = kube::ErrorKind::conflict;
  error.reason = "ConfigMapConflict";
  error.message = "ConfigMap " + kube::to_string(migration.object.key()) +
                  " is not this migration's: rename or remove it, or give the migration another name";
  return error;
}

}  // namespace

void Ledger::succeed(const std::string& cluster) {
  success.insert(cluster);
  failures.erase(cluster);
}

void Ledger::fail(const std::string& cluster, Failure failure) {
  if (!success.contains(cluster)) failures.insert_or_assign(cluster, std::move(failure));
}

ClusterNames Ledger::under_way() const {
  ClusterNames names;
  for (const auto& name : all)
    if (!success.contains(name) && !failures.contains(name)) names.push_back(name);
  return names;
}

ClusterNames Ledger::to_roll_back() const {
  ClusterNames names;
  for (const auto& name : all)
    if (!success.contains(name) && !rolled_back.contains(name)) names.push_back(name);
  return names;
}

ClusterNames Ledger::to_undo() const {
  ClusterNames names;
  for (const auto& name : all)
    if (!success.contains(name) && !undone.contains(name)) names.push_back(name);
  return names;
}

ClusterNames Ledger::to_clean() const {
  ClusterNames names;
  for (const auto& name : success)
    if (!unverified.contains(name) && !cleaned.contains(name)) names.push_back(name);
  return names;
}

json::object to_data(const Ledger& ledger) {
  ClusterNames failed;
  for (const auto& [name, failure] : ledger.failures) failed.push_back(name);
  json::object data{{"all-clusters", list(ledger.all)},
                    {"success", list(ledger.success)},
                    {"failure", list(failed)},
                    {"failure-details", details(ledger.failures, longest_detail)},
                    {"rolled-back", list(ledger.rolled_back)},
                    {"undone", list(ledger.undone)},
                    {"unverified", list(ledger.unverified)},
                    {"cleaned", list(ledger.cleaned)}};
  if (bytes_in(data) > most_bytes) data["failure-details"] = details(ledger.failures, 0);
  if (bytes_in(data) <= most_bytes) return data;
  data["failure-details"] = grouped_details(ledger.failures, ledger.all);
  data["rolled-back"] = ranges(ledger.rolled_back, ledger.all);
  data["undone"] = ranges(ledger.undone, ledger.all);
  data["unverified"] = ranges(ledger.unverified, ledger.all);
  data["cleaned"] = ranges(ledger.cleaned, ledger.all);
  return data;
}

Ledger ledger_from_data(const json::object& data) {
  Ledger ledger;
  const auto all = read_set(data, "all-clusters", {});
  ledger.all.assign(all.begin(), all.end());
  ledger.success = read_set(data, "success", {});
  ledger.rolled_back = read_set(data, "rolled-back", ledger.all);
  ledger.undone = read_set(data, "undone", ledger.all);
  ledger.unverified = read_set(data, "unverified", ledger.all);
  ledger.cleaned = read_set(data, "cleaned", ledger.all);
  auto reasons = read_details(data, ledger.all);
  for (const auto& name : read_set(data, "failure", {})) ledger.fail(name, std::move(reasons[name]));
  return ledger;
}

namespace {

Ledger data_of(const kube::Object& config_map) {
  const auto* data = config_map.find({"data"});
  return data != nullptr && data->is_object() ? ledger_from_data(data->get_object()) : Ledger{};
}

}  // namespace

async::Awaitable<kube::Result<std::optional<Ledger>>> read_ledger(kube::Api& api, const Migration& migration) {
  auto read = co_await api.get(kube::resources::config_maps, migration.object.key());
  if (!read && read.error().kind == kube::ErrorKind::not_found) co_return std::optional<Ledger>{};
  if (!read) co_return read.error();
  if (!kube::is_owned_by(*read, migration.object.uid())) co_return foreign(migration);
  co_return std::optional<Ledger>{data_of(*read)};
}

async::Awaitable<kube::Result<>> write_ledger(kube::Api& api, const Migration& migration, Ledger ledger) {
  LedgerChange replace = [&ledger](Ledger& present) { present = ledger; };
  co_return co_await change_ledger(api, migration, ledger, replace);
}

async::Awaitable<kube::Result<>> change_ledger(kube::Api& api, const Migration& migration, Ledger known,
                                               LedgerChange change) {
  bool is_foreign = false;
  auto mutate = [&](json::object& object) {
    const kube::Object present{object};
    is_foreign = !present.uid().empty() && !kube::is_owned_by(present, migration.object.uid());
    if (is_foreign) return false;
    bool changed = kube::set_owner(object, managed_cluster_migrations, migration.object,
                                   {.controller = false, .block_owner_deletion = false})
                       .value();
    auto& metadata = object["metadata"].as_object();
    auto& label = kube::object_in(metadata, "labels")[hubagent::migration_label];
    const json::value uid(migration.object.uid());
    if (label != uid) {
      label = uid;
      changed = true;
    }
    auto ledger = data_of(present);
    if (ledger.all.empty()) ledger = known;
    change(ledger);
    auto data = to_data(ledger);
    if (object["data"] == data) return changed;
    object["data"] = std::move(data);
    return true;
  };
  auto written = co_await kube::create_or_patch(api, kube::resources::config_maps, migration.object.key(), mutate);
  if (is_foreign) co_return foreign(migration);
  if (!written) co_return written.error();
  co_return kube::Result<>{};
}

}  // namespace hubferry::migration
