#include "hubferry/mysql/exporter.hpp"

#include <charconv>
#include <cmath>

namespace hubferry::mysql {

namespace {

struct Line {
  std::string_view name;
  std::string_view labels;
  std::optional<double> value;
};

Line split(std::string_view line) {
  Line parts;
  const auto end = line.find_first_of("{ ");
  parts.name = line.substr(0, end);
  auto rest = end == std::string_view::npos ? std::string_view{} : line.substr(end);
  if (rest.starts_with('{')) {
    const auto close = rest.rfind('}');
    parts.labels = rest.substr(1, close == std::string_view::npos ? rest.size() : close - 1);
    rest = close == std::string_view::npos ? std::string_view{} : rest.substr(close + 1);
  }
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  double number = 0;
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error == std::errc{} && stop != rest.data() && std::isfinite(number)) parts.value = number;
  return parts;
}

std::string label(std::string_view labels, std::string_view name) {
  const auto wanted = std::string{name} + "=\"";
  auto at = labels.find(wanted);
  // Not the end of a longer name.
  while (at != std::string_view::npos && at > 0 && labels[at - 1] != ',') at = labels.find(wanted, at + 1);
  if (at == std::string_view::npos) return {};
  const auto begin = at + name.size() + 2;
  return std::string{labels.substr(begin, labels.find('"', begin) - begin)};
}

void take(Sample& sample, const Line& line) {
  if (line.name == "mysql_version_info") sample.version = label(line.labels, "version");
  if (!line.value) return;
  const double value = *line.value;
  std::optional<std::uint32_t> number;
  if (value >= 0 && value <= std::numeric_limits<std::uint32_t>::max()) number = static_cast<std::uint32_t>(value);
  if (line.name == "mysql_up") sample.up = value == 1;
  if (line.name == "mysql_global_variables_read_only") sample.read_only = value != 0;
  if (line.name == "mysql_global_variables_rpl_semi_sync_master_enabled") sample.semi_sync = value != 0;
  if (line.name == "mysql_global_variables_rpl_semi_sync_master_timeout") sample.semi_sync_timeout = value;
  if (line.name == "mysql_global_variables_server_id") sample.server_id = number;
  if (line.name == "mysql_exporter_scrape_errors_total" && value > 0 &&
      label(line.labels, "collector") == "collect.slave_status")
    sample.replica_unknown = true;
  // 0.15 and later report each collector's success instead.
  if (line.name == "mysql_exporter_collector_success" && value == 0 &&
      label(line.labels, "collector") == "collect.slave_status")
    sample.replica_unknown = true;
  constexpr std::string_view replica = "mysql_slave_status_";
  if (!line.name.starts_with(replica) || !label(line.labels, "connection_name").empty()) return;
  const auto field = line.name.substr(replica.size());
  if (field == "seconds_behind_master") sample.lag = value;
  if (field == "slave_io_running") sample.io_running = value == 1;
  if (field == "slave_sql_running") sample.sql_running = value == 1;
  if (field == "last_sql_errno") sample.sql_error = number;
  if (field == "master_server_id") sample.master_server_id = number;
}

}  // namespace

Sample parse_metrics(std::string_view text) {
  Sample sample;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.starts_with("mysql_")) take(sample, split(line));
  }
  return sample;
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::unknown:
      return "unknown";
    case Verdict::unreachable:
      return "unreachable";
    case Verdict::read_only:
      return "read-only";
    case Verdict::writable:
      return "writable";
  }
  return "unknown";
}

Verdict verdict_of(const std::optional<Sample>& sample) {
  if (!sample || !sample->up) return Verdict::unreachable;
  if (!sample->read_only) return Verdict::unknown;
  return *sample->read_only ? Verdict::read_only : Verdict::writable;
}

}  // namespace hubferry::mysql
