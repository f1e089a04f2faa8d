#include "hubferry/phase/state.hpp"

namespace hubferry::phase {

bool State::operator==(const State& other) const {
  const bool same_summary =
      summary == other.summary || (summary != nullptr && other.summary != nullptr && *summary == *other.summary);
  return done == other.done && failed == other.failed && fatal == other.fatal && start_time == other.start_time &&
         end_time == other.end_time && error == other.error && same_summary && components == other.components &&
         extra == other.extra;
}

const State& State::component(std::string_view name) const {
  static const State never_ran;
  const auto* found = components.find(name);
  return found == nullptr ? never_ran : *found;
}

std::string shortened(std::string_view text, std::size_t limit) {
  constexpr std::string_view ellipsis = "…";
  if (text.size() <= limit) return std::string{text};
  std::size_t end = limit > ellipsis.size() ? limit - ellipsis.size() : 0;
  // Not inside a UTF-8 sequence: its further bytes are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string{text.substr(0, end)} + std::string{ellipsis};
}

}  // namespace hubferry::phase
