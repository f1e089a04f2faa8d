#include "mysql/gtid.hpp"

#include <charconv>
#include <optional>

namespace hubferry::mysql {

namespace {

/// Takes a number and what separates it from the next off the front of `text`.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('-')) text.remove_prefix(1);
  return number;
}

}  // namespace

std::uint64_t GtidPosition::progress() const {
  std::uint64_t sum = 0;
  for (const auto& [domain, last] : domains) sum += last.sequence;
  return sum;
}

GtidPosition parse_gtid(std::string_view text) {
  GtidPosition position;
  while (!text.empty()) {
    const auto comma = text.find(',');
    auto part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (part.starts_with(' ') || part.starts_with('\n')) part.remove_prefix(1);
    const auto domain = take_number(part);
    const auto server = domain ? take_number(part) : std::nullopt;
    const auto sequence = server ? take_number(part) : std::nullopt;
    if (sequence)
      position.domains[static_cast<std::uint32_t>(*domain)] = {static_cast<std::uint32_t>(*server), *sequence};
  }
  return position;
}

std::string to_text(const GtidPosition& position) {
  std::string text;
  for (const auto& [domain, last] : position.domains)
    text += (text.empty() ? "" : ",") + std::to_string(domain) + "-" + std::to_string(last.server) + "-" +
            std::to_string(last.sequence);
  return text;
}

bool has_more(const GtidPosition& other, const GtidPosition& position) {
  for (const auto& [domain, last] : other.domains) {
    const auto found = position.domains.find(domain);
    if (found == position.domains.end()) return true;
    if (last.sequence > found->second.sequence) return true;
    if (last.sequence == found->second.sequence && last.server != found->second.server) return true;
  }
  return false;
}

GtidPosition merged(GtidPosition one, const GtidPosition& other) {
  for (const auto& [domain, last] : other.domains) {
    auto& mine = one.domains[domain];
    if (last.sequence > mine.sequence) mine = last;
  }
  return one;
}

}  // namespace hubferry::mysql
