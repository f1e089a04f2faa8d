#include "migration/ledger.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/edit.hpp"

namespace hubferry::migration {

namespace {

constexpr std::size_t longest_message = 200;
// A server takes 1 MiB in all. Above this the messages go, and only reasons stay.
constexpr std::size_t most_details = 400UL * 1024;

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

template <typename Add>
void read_names(const json::object& data, std::string_view key, Add add) {
  const auto value = parsed(data, key);
  if (!value.is_array()) return;
  for (const auto& entry : value.get_array())
    if (entry.is_string()) add(std::string{entry.get_string()});
}

std::set<std::string> read_set(const json::object& data, std::string_view key) {
  std::set<std::string> names;
  read_names(data, key, [&](std::string name) { names.insert(std::move(name)); });
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

ClusterNames Ledger::to_clean() const {
  ClusterNames names;
  for (const auto& name : success)
    if (!unverified.contains(name) && !cleaned.contains(name)) names.push_back(name);
  return names;
}

json::object to_data(const Ledger& ledger) {
  ClusterNames failed;
  for (const auto& [name, failure] : ledger.failures) failed.push_back(name);
  json::object data{{"all-clusters", list(ledger.all)}, {"success", list(ledger.success)}, {"failure", list(failed)}};
  auto text = details(ledger.failures, longest_message);
  if (text.size() > most_details) text = details(ledger.failures, 0);
  data["failure-details"] = text;
  data["rolled-back"] = list(ledger.rolled_back);
  data["unverified"] = list(ledger.unverified);
  data["cleaned"] = list(ledger.cleaned);
  return data;
}

Ledger ledger_from_data(const json::object& data) {
  Ledger ledger;
  std::set<std::string> all = read_set(data, "all-clusters");
  ledger.all.assign(all.begin(), all.end());
  ledger.success = read_set(data, "success");
  ledger.rolled_back = read_set(data, "rolled-back");
  ledger.unverified = read_set(data, "unverified");
  ledger.cleaned = read_set(data, "cleaned");
  const auto reasons = parsed(data, "failure-details");
  read_names(data, "failure", [&](const std::string& name) {
    Failure failure;
    const auto* entry = kube::find(reasons, {name});
    if (entry != nullptr && entry->is_object()) {
      failure.stage = kube::string_at(entry->get_object(), {"stage"});
      failure.reason = kube::string_at(entry->get_object(), {"reason"});
      failure.message = kube::string_at(entry->get_object(), {"message"});
    }
    ledger.fail(name, std::move(failure));
  });
  return ledger;
}

async::Awaitable<kube::Result<std::optional<Ledger>>> read_ledger(kube::Api& api, const Migration& migration) {
  auto read = co_await api.get(kube::resources::config_maps, migration.object.key());
  if (!read && read.error().kind == kube::ErrorKind::not_found) co_return std::optional<Ledger>{};
  if (!read) co_return read.error();
  if (!kube::is_owned_by(*read, migration.object.uid())) co_return foreign(migration);
  const auto* data = read->find({"data"});
  static const json::object nothing;
  co_return std::optional<Ledger>{
      ledger_from_data(data != nullptr && data->is_object() ? data->get_object() : nothing)};
}

async::Awaitable<kube::Result<>> write_ledger(kube::Api& api, const Migration& migration, Ledger ledger) {
  bool is_foreign = false;
  auto mutate = [&](json::object& object) {
    const kube::Object present{object};
    is_foreign = !present.uid().empty() && !kube::is_owned_by(present, migration.object.uid());
    if (is_foreign) return false;
    auto data = to_data(ledger);
    bool changed = kube::set_owner(object, managed_cluster_migrations, migration.object,
                                   {.controller = false, .block_owner_deletion = false})
                       .value();
    auto& metadata = object["metadata"].as_object();
    auto& labels = metadata["labels"];
    if (!labels.is_object()) labels.emplace_object();
    auto& label = labels.get_object()[hubagent::migration_label];
    const json::value uid(migration.object.uid());
    if (label != uid) {
      label = uid;
      changed = true;
    }
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
