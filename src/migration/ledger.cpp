#include "migration/ledger.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/names.hpp"

namespace hubferry::migration {

namespace {

constexpr std::size_t longest_detail = 200;
// An API server accepts 1 MiB for the whole object.
constexpr std::size_t most_bytes = 900UL * 1024;

// What the lists other than that of all clusters may need for one cluster, as ranges: in the worst case every second
// cluster has failed, and each is in three lists and in the details.
constexpr std::size_t most_range_bytes = 42;

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

/// The names as ranges of indices into `all`: "[[0,4999]]" where a list of thousands would not fit.
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

using Range = std::pair<std::int64_t, std::int64_t>;

std::optional<Range> range_in(const json::value& entry) {
  if (!entry.is_array() || entry.get_array().size() != 2) return std::nullopt;
  const auto& ends = entry.get_array();
  if (!ends[0].is_int64() || !ends[1].is_int64() || ends[0].get_int64() < 0) return std::nullopt;
  return Range{ends[0].get_int64(), ends[1].get_int64()};
}

/// `left`: so many names may still come from ranges.
std::set<std::string> read_set(const json::object& data, std::string_view key, const ClusterNames& all,
                               std::size_t& left) {
  std::set<std::string> names;
  const auto value = parsed(data, key);
  if (!value.is_array()) return names;
  std::vector<Range> given;
  for (const auto& entry : value.get_array()) {
    if (entry.is_string()) names.emplace(entry.get_string());
    if (const auto range = range_in(entry)) given.push_back(*range);
  }
  // Sorted, so that each name is inserted once: somebody may have written thousands that overlap.
  std::ranges::sort(given);
  std::int64_t next = 0;
  for (const auto& [first, last] : given)
    for (next = std::max(next, first); next <= last && next < std::ssize(all) && left > 0; ++next, --left)
      names.insert(all[static_cast<std::size_t>(next)]);
  return names;
}

std::set<std::string> read_set(const json::object& data, std::string_view key, const ClusterNames& all) {
  auto left = all.size();
  return read_set(data, key, all, left);
}

std::string details(const Failures& failures, std::size_t message_limit) {
  json::object all;
  for (const auto& [cluster, failure] : failures) {
    json::object entry{{"stage", failure.stage}, {"reason", failure.reason}};
    if (message_limit > 0) entry["message"] = phase::shortened(failure.message, message_limit);
    all.emplace(cluster, std::move(entry));
  }
  return json::serialize(all);
}

/// Each stage and reason once, with the ranges of its clusters.
std::string grouped_details(const Failures& failures, const ClusterNames& all) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> groups;
  for (const auto& [cluster, failure] : failures) groups[{failure.stage, failure.reason}].insert(cluster);
  json::array array;
  for (const auto& [group, clusters] : groups)
    array.push_back(
        json::object{{"stage", group.first}, {"reason", group.second}, {"clusters", ranges(clusters, all)}});
  return json::serialize(array);
}

/// What was left behind, each hub once, with the ranges of its clusters. Whole hubs stand by their names.
std::string grouped_left_behind(const std::set<std::string>& left_behind, const ClusterNames& all) {
  std::map<std::string, std::set<std::string>> groups;
  json::array array;
  for (const auto& entry : left_behind) {
    const auto slash = entry.find('/');
    if (slash == std::string::npos)
      array.emplace_back(entry);
    else
      groups[entry.substr(0, slash)].insert(entry.substr(slash + 1));
  }
  for (const auto& [hub, clusters] : groups)
    array.push_back(json::object{{"hub", hub}, {"clusters", ranges(clusters, all)}});
  return json::serialize(array);
}

std::set<std::string> read_left_behind(const json::object& data, const ClusterNames& all) {
  auto names = read_set(data, "left-behind", {});
  const auto value = parsed(data, "left-behind");
  if (!value.is_array()) return names;
  auto left = 2 * all.size();  // each on the source and on the target
  for (const auto& group : value.get_array()) {
    if (!group.is_object()) continue;
    const std::string hub{kube::string_at(group.get_object(), {"hub"})};
    for (const auto& cluster : read_set(group.get_object(), "clusters", all, left)) names.insert(hub + "/" + cluster);
  }
  return names;
}

/// What details() or grouped_details() wrote.
Failures read_details(const json::object& data, const ClusterNames& all) {
  Failures failures;
  const auto failure_in = [](const json::object& entry) {
    return Failure{std::string{kube::string_at(entry, {"stage"})}, std::string{kube::string_at(entry, {"reason"})},
                   std::string{kube::string_at(entry, {"message"})}};
  };
  const auto value = parsed(data, "failure-details");
  if (value.is_object())
    for (const auto& entry : value.get_object())
      if (entry.value().is_object()) failures[entry.key()] = failure_in(entry.value().get_object());
  auto left = all.size();  // each is in one group
  if (value.is_array())
    for (const auto& group : value.get_array()) {
      if (!group.is_object()) continue;
      for (const auto& cluster : read_set(group.get_object(), "clusters", all, left))
        failures[cluster] = failure_in(group.get_object());
    }
  return failures;
}

std::string waits(const std::map<std::string, std::string>& waiting) {
  json::object all;
  for (const auto& [cluster, message] : waiting) all.emplace(cluster, phase::shortened(message, longest_detail));
  return json::serialize(all);
}

std::map<std::string, std::string> read_waits(const json::object& data) {
  std::map<std::string, std::string> waiting;
  const auto value = parsed(data, "waiting");
  if (!value.is_object()) return waiting;
  for (const auto& entry : value.get_object())
    if (entry.value().is_string()) waiting.emplace(entry.key(), entry.value().get_string());
  return waiting;
}

std::size_t bytes_in(const json::object& data) {
  std::size_t bytes = 0;
  for (const auto& entry : data) bytes += entry.key().size() + entry.value().get_string().size();
  return bytes;
}

}  // namespace

void Ledger::succeed(const std::string& cluster) {
  success.insert(cluster);
  failures.erase(cluster);
}

void Ledger::fail(const std::string& cluster, Failure failure) {
  if (!success.contains(cluster)) failures.insert_or_assign(cluster, std::move(failure));
}

void Ledger::give_back(const std::string& cluster, Failure failure) {
  for (auto* list : {&success, &unverified, &released, &rolled_back, &undone}) list->erase(cluster);
  fail(cluster, std::move(failure));
}

void Ledger::leave_behind_arrived(const std::set<std::string>& given_up) {
  std::erase_if(left_behind, [&](const std::string& entry) {
    const auto slash = entry.find('/');
    return slash == std::string::npos || success.contains(entry.substr(slash + 1));
  });
  left_behind.insert(given_up.begin(), given_up.end());
}

void Ledger::forget_unlisted() {
  const auto is_listed = [this](const std::string& name) { return std::ranges::binary_search(all, name); };
  for (auto* list : {&success, &rolled_back, &undone, &unverified, &released, &cleaned})
    std::erase_if(*list, [&](const std::string& name) { return !is_listed(name); });
  std::erase_if(failures, [&](const auto& entry) { return !is_listed(entry.first); });
}

ClusterNames Ledger::in_flight() const {
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
                    {"released", list(ledger.released)},
                    {"cleaned", list(ledger.cleaned)},
                    {"waiting", waits(ledger.waiting)},
                    {"left-behind", list(ledger.left_behind)}};
  if (bytes_in(data) > most_bytes) data["waiting"] = "{}";
  if (bytes_in(data) > most_bytes) data["failure-details"] = details(ledger.failures, 0);
  if (bytes_in(data) <= most_bytes) return data;
  data["failure-details"] = grouped_details(ledger.failures, ledger.all);
  data["rolled-back"] = ranges(ledger.rolled_back, ledger.all);
  data["undone"] = ranges(ledger.undone, ledger.all);
  data["unverified"] = ranges(ledger.unverified, ledger.all);
  data["released"] = ranges(ledger.released, ledger.all);
  data["cleaned"] = ranges(ledger.cleaned, ledger.all);
  data["left-behind"] = grouped_left_behind(ledger.left_behind, ledger.all);
  if (bytes_in(data) <= most_bytes) return data;
  const std::set<std::string> failed_ones(failed.begin(), failed.end());
  data["success"] = ranges(ledger.success, ledger.all);
  data["failure"] = ranges(failed_ones, ledger.all);
  return data;
}

bool fits_ledger(const ClusterNames& clusters) {
  std::size_t bytes = 0;
  for (const auto& name : clusters) bytes += name.size() + 3 + most_range_bytes;
  return bytes <= most_bytes;
}

Ledger ledger_from_data(const json::object& data, const ClusterNames& known) {
  ClusterNames listed;
  // No cluster has another name, and no request for it could succeed.
  for (const auto& name : read_set(data, "all-clusters", {}))
    if (kube::is_dns_subdomain(name)) listed.push_back(name);
  // Indices into a list that somebody has changed say nothing.
  if (!known.empty() && listed != known) listed.clear();
  Ledger ledger;
  ledger.success = read_set(data, "success", listed);
  ledger.rolled_back = read_set(data, "rolled-back", listed);
  ledger.undone = read_set(data, "undone", listed);
  ledger.unverified = read_set(data, "unverified", listed);
  ledger.released = read_set(data, "released", listed);
  ledger.cleaned = read_set(data, "cleaned", listed);
  ledger.waiting = read_waits(data);
  ledger.left_behind = read_left_behind(data, listed);
  auto reasons = read_details(data, listed);
  for (const auto& name : read_set(data, "failure", listed)) ledger.fail(name, std::move(reasons[name]));
  if (known.empty())
    ledger.all = std::move(listed);
  else
    ledger.all = known;
  if (!ledger.all.empty()) ledger.forget_unlisted();
  return ledger;
}

}  // namespace hubferry::migration
