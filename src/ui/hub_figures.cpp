#include "ui/hub_figures.hpp"

#include <boost/json/object.hpp>
#include <charconv>
#include <cmath>
#include <vector>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/server_url.hpp"

namespace hubferry::ui {

namespace {

struct Series {
  std::string_view name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;

  [[nodiscard]] std::string label(std::string_view label_name) const {
    const auto found = labels.find(label_name);
    return found == labels.end() ? std::string{} : found->second;
  }
};

/// Reads {a="x",b="y"} and moves `line` behind it.
void read_labels(std::string_view& line, Series& series) {
  if (!line.starts_with('{')) return;
  line.remove_prefix(1);
  while (!line.empty() && line.front() != '}') {
    const auto equals = line.find("=\"");
    if (equals == std::string_view::npos) return;
    std::string name{line.substr(0, equals)};
    line.remove_prefix(equals + 2);
    std::string value;
    while (!line.empty() && line.front() != '"') {
      if (line.front() == '\\' && line.size() > 1) {
        line.remove_prefix(1);
        value += line.front() == 'n' ? '\n' : line.front();
      } else {
        value += line.front();
      }
      line.remove_prefix(1);
    }
    if (!line.empty()) line.remove_prefix(1);
    if (line.starts_with(',')) line.remove_prefix(1);
    series.labels.emplace(std::move(name), std::move(value));
  }
  if (!line.empty()) line.remove_prefix(1);
}

/// nullopt for a comment, and for metrics that do not concern hubs.
std::optional<Series> read_series(std::string_view line) {
  if (!line.starts_with("hubferry_hub_") && !line.starts_with("rest_client_request")) return std::nullopt;
  Series series;
  const auto end = line.find_first_of("{ ");
  if (end == std::string_view::npos) return std::nullopt;
  series.name = line.substr(0, end);
  if (series.name.ends_with("_bucket")) return std::nullopt;
  line.remove_prefix(end);
  read_labels(line, series);
  if (!line.starts_with(' ')) return std::nullopt;
  line.remove_prefix(1);
  const auto [last, error] = std::from_chars(line.data(), line.data() + line.size(), series.value);
  return error == std::errc{} ? std::optional{std::move(series)} : std::nullopt;
}

bool is_error(const std::string& code) {
  return code.starts_with('5') || code.starts_with('<') || code == "429" || code == "401" || code == "403";
}

double rounded(double value) {
  return std::round(value * 10) / 10;
}

}  // namespace

void HubFigures::name_host(const std::string& hub, const std::string& server) {
  try {
    hubs_by_host_[kube::parse_server_url(server).authority()] = hub;
  } catch (const kube::ConfigError&) {
    // Then there is no connection either, and nothing to name.
  }
}

std::map<std::string, HubFigures::Figures> HubFigures::read(std::string_view metrics) const {
  std::map<std::string, Figures> hubs;
  while (!metrics.empty()) {
    const auto end = std::min(metrics.find('\n'), metrics.size());
    const auto series = read_series(metrics.substr(0, end));
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (!series) continue;
    auto hub = series->label("hub");
    if (const auto named = hubs_by_host_.find(series->label("host")); hub.empty() && named != hubs_by_host_.end())
      hub = named->second;
    if (hub.empty()) continue;
    auto& figures = hubs[hub];
    if (series->name == "hubferry_hub_reachable") figures.reachable = series->value;
    if (series->name == "rest_client_requests_total") {
      figures.requests += series->value;
      if (is_error(series->label("code"))) figures.errors += series->value;
    }
    const bool is_watch = series->label("verb") == "WATCH";
    if (series->name == "rest_client_request_duration_seconds_sum" && !is_watch)
      figures.answer_seconds += series->value;
    if (series->name == "rest_client_request_duration_seconds_count" && !is_watch) figures.answers += series->value;
  }
  return hubs;
}

boost::json::array HubFigures::update(std::string_view metrics, async::TimePoint now) {
  auto hubs = read(metrics);
  const double seconds = std::chrono::duration<double>(now - at_).count();
  boost::json::array shown;
  for (const auto& [name, figures] : hubs) {
    boost::json::object hub{{"name", name}};
    if (figures.reachable) hub["reachable"] = *figures.reachable > 0;
    if (const auto before = before_.find(name); before != before_.end() && seconds > 0) {
      hub["requestsPerSecond"] = rounded((figures.requests - before->second.requests) / seconds);
      hub["errorsPerSecond"] = rounded((figures.errors - before->second.errors) / seconds);
      const auto answers = figures.answers - before->second.answers;
      if (answers > 0)
        hub["latencyMs"] = rounded((figures.answer_seconds - before->second.answer_seconds) / answers * 1000);
    }
    shown.push_back(std::move(hub));
  }
  before_ = std::move(hubs);
  at_ = now;
  return shown;
}

}  // namespace hubferry::ui
