#include "mysql/cluster.hpp"

namespace hubferry::mysql {

bool is_named(std::string_view list, const std::string& name) {
  return (", " + std::string{list} + ", ").find(", " + name + ", ") != std::string::npos;
}

async::WallTime time_of(const std::string& text, async::WallTime otherwise) {
  try {
    return text.empty() ? otherwise : async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return otherwise;
  }
}

std::optional<FailoverRecord> Cluster::failover() const {
  const auto* value = status.if_contains("failover");
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const auto& from = value->get_object();
  FailoverRecord record;
  record.from = kube::string_at(from, {"from"});
  record.to = kube::string_at(from, {"to"});
  record.wanted = kube::string_at(from, {"wanted"});
  record.started = kube::string_at(from, {"startTime"});
  record.fenced = kube::string_at(from, {"fencedTime"});
  record.without = kube::string_at(from, {"without"});
  record.received = kube::string_at(from, {"received"});
  record.chosen_start = kube::string_at(from, {"chosenStart"});
  record.waiting_for = kube::string_at(from, {"waitingFor"});
  record.waiting_since = kube::string_at(from, {"waitingSince"});
  const auto* planned = from.if_contains("planned");
  record.planned = planned != nullptr && planned->is_bool() && planned->get_bool();
  return record;
}

void Cluster::set_failover(const FailoverRecord& record) {
  json::object value{{"from", record.from}, {"planned", record.planned}, {"startTime", record.started}};
  if (!record.to.empty()) value["to"] = record.to;
  if (!record.wanted.empty()) value["wanted"] = record.wanted;
  if (!record.fenced.empty()) value["fencedTime"] = record.fenced;
  if (!record.without.empty()) value["without"] = record.without;
  if (!record.received.empty()) value["received"] = record.received;
  if (!record.chosen_start.empty()) value["chosenStart"] = record.chosen_start;
  if (!record.waiting_for.empty()) value["waitingFor"] = record.waiting_for;
  if (!record.waiting_since.empty()) value["waitingSince"] = record.waiting_since;
  status["failover"] = std::move(value);
}

std::vector<std::string> Cluster::given_up() const {
  std::vector<std::string> pods;
  const auto* list = status.if_contains("givenUp");
  if (list == nullptr || !list->is_array()) return pods;
  for (const auto& pod : list->get_array())
    if (pod.is_string()) pods.emplace_back(pod.get_string());
  return pods;
}

void Cluster::set_given_up(const std::vector<std::string>& pods) {
  status.erase("givenUp");
  if (!pods.empty()) status["givenUp"] = json::array(pods.begin(), pods.end());
}

}  // namespace hubferry::mysql
