#include "app/cli/flag_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "hubferry/kube/names.hpp"

namespace hubferry::app {

namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument("'" + std::string(text) + "' " + why);
}

template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Damerau-Levenshtein distance: substitutions, insertions, deletions and transpositions.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

bool parse_switch(std::string_view text) {
  for (const auto* yes : {"true", "True", "TRUE", "1", "t", "T"})
    if (text == yes) return true;
  for (const auto* no : {"false", "False", "FALSE", "0", "f", "F"})
    if (text == no) return false;
  refuse(text, "is neither true nor false");
}

std::int64_t parse_integer(std::string_view text, std::int64_t least, std::int64_t most) {
  const auto value = read_number<std::int64_t>(text);
  if (!value || *value < least || *value > most)
    refuse(text, "is not an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return *value;
}

double parse_number(std::string_view text) {
  const auto value = read_number<double>(text);
  if (!value || !std::isfinite(*value)) refuse(text, "is not a number");
  return *value;
}

async::Duration parse_positive_duration(std::string_view text) {
  const auto duration = async::parse_duration(text);
  if (duration <= async::Duration{0}) refuse(text, "is not greater than zero");
  return duration;
}

std::vector<std::string> parse_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const auto comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (items.back().empty()) refuse(text, "has an empty item: separate names by one comma");
    if (std::count(items.begin(), items.end(), items.back()) > 1) refuse(items.back(), "is listed twice");
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) refuse(",", "at the end: separate names by one comma");
  }
  return items;
}

std::string parse_choice(std::string_view text, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string(text);
  const auto meant = nearest(text, choices);
  refuse(text, "is invalid: use " + join_choices(choices) + (meant ? " (did you mean " + *meant + "?)" : ""));
}

std::string parse_namespace(std::string_view text) {
  if (!kube::is_dns_label(text))
    refuse(text, "is not a valid namespace: use up to 63 of a-z, 0-9 and '-', not beginning or ending with '-'");
  return std::string(text);
}

std::string parse_object_name(std::string_view text) {
  if (!kube::is_dns_subdomain(text))
    refuse(text,
           "is not a valid name: use up to 253 of a-z, 0-9, '-' and '.', not beginning or ending with '-' or '.'");
  return std::string(text);
}

std::string join_choices(const std::vector<std::string>& choices) {
  std::string all;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) all += i + 1 == choices.size() ? " or " : ", ";
    all += choices[i];
  }
  return all;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    // With as many edits as it has letters, any word becomes any other.
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace hubferry::app
