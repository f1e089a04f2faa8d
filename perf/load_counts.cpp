#include "load_counts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace hubferry::perf {

namespace {

/// name="value",name="value"
std::map<std::string, std::string> read_labels(std::string_view text) {
  std::map<std::string, std::string> labels;
  while (!text.empty()) {
    const auto equals = text.find("=\"");
    if (equals == std::string_view::npos) break;
    const auto end = text.find('"', equals + 2);
    if (end == std::string_view::npos) break;
    labels.emplace(text.substr(0, equals), text.substr(equals + 2, end - equals - 2));
    text.remove_prefix(std::min(text.size(), end + 2));
  }
  return labels;
}

std::string label(const Scrape::Series& series, const std::string& name) {
  const auto found = series.labels.find(name);
  return found == series.labels.end() ? std::string{} : found->second;
}

}  // namespace

Scrape::Scrape(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    const auto value = line.rfind(' ');
    if (line.empty() || line.front() == '#' || value == std::string_view::npos) continue;
    const auto brace = line.find('{');
    const auto name = line.substr(0, std::min(brace, value));
    Series series;
    if (brace < value) series.labels = read_labels(line.substr(brace + 1, value - brace - 2));
    series.value = std::strtod(std::string{line.substr(value + 1)}.c_str(), nullptr);
    series_[std::string{name}].push_back(std::move(series));
  }
}

const std::vector<Scrape::Series>& Scrape::of(const std::string& name) const {
  static const std::vector<Series> none;
  const auto found = series_.find(name);
  return found == series_.end() ? none : found->second;
}

double Scrape::sum(const std::string& name, const std::string& with, const std::string& value) const {
  double all = 0;
  for (const auto& series : of(name))
    if (with.empty() || label(series, with) == value) all += series.value;
  return all;
}

double Scrape::quantile(const std::string& histogram, double share) const {
  std::map<double, double> up_to;  // by the bucket's bound
  for (const auto& series : of(histogram + "_bucket")) {
    const auto bound = label(series, "le");
    up_to[bound == "+Inf" ? std::numeric_limits<double>::infinity() : std::atof(bound.c_str())] += series.value;
  }
  if (up_to.empty() || up_to.rbegin()->second == 0) return 0;
  const double wanted = share * up_to.rbegin()->second;
  double bound_before = 0;
  double count_before = 0;
  for (const auto& [bound, count] : up_to) {
    if (count >= wanted)
      return std::isinf(bound)
                 ? bound_before
                 : bound_before + (bound - bound_before) * (wanted - count_before) / (count - count_before);
    bound_before = bound;
    count_before = count;
  }
  return bound_before;
}

void add_requests(RequestTable& into, const Scrape& before, const Scrape& after) {
  const auto add = [&](const Scrape& scrape, double sign) {
    for (const auto& series : scrape.of("apiserver_request_total")) {
      const auto subresource = label(series, "subresource");
      const auto name =
          label(series, "verb") + " " + label(series, "resource") + (subresource.empty() ? "" : "/" + subresource);
      into[name] += sign * series.value;
    }
  };
  add(after, 1);
  add(before, -1);
  std::erase_if(into, [](const auto& entry) { return entry.second == 0; });
}

double total(const RequestTable& requests) {
  double all = 0;
  for (const auto& [name, count] : requests) all += count;
  return all;
}

}  // namespace hubferry::perf
