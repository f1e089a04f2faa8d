#include "app/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <sstream>

#include "hubferry/obs/utf8.hpp"

namespace hubferry::app {

namespace {

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::plain:
      return "0";
    case Colour::red:
      return "31";
    case Colour::green:
      return "32";
    case Colour::yellow:
      return "33";
    case Colour::blue:
      return "36";
    case Colour::dim:
      return "2";
    case Colour::bold:
      return "1";
  }
  return "0";
}

std::string cell_text(const std::string& text) {
  return text.empty() ? "-" : fitted(text, 0);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Removes the leading digits from `text` and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  auto number = text.substr(0, length);
  text.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

Terminal Terminal::of(int fd) {
  Terminal terminal;
  terminal.interactive = isatty(fd) == 1;
  if (!terminal.interactive) return terminal;
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool dumb = kind != nullptr && std::string_view{kind} == "dumb";
  terminal.colour = !dumb && (no_color == nullptr || *no_color == '\0');
  terminal.interactive = !dumb;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
    terminal.width = size.ws_col;
    terminal.height = size.ws_row;
  }
  return terminal;
}

std::string painted(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::plain) return std::string{text};
  return "\x1b[" + std::string{code_of(colour)} + "m" + std::string{text} + "\x1b[0m";
}

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(obs::first_character(text).bytes);
  return count;
}

std::string harmless(std::string_view text) {
  std::string result = obs::to_utf8(text);
  for (std::size_t at = 0; at < result.size(); ++at) {
    const auto byte = static_cast<unsigned char>(result[at]);
    if ((byte < ' ' && byte != '\n') || byte == 0x7f) result[at] = ' ';
    // U+0080 to U+009F, which some terminals take for escape sequences, too.
    const bool is_c1 = byte == 0xc2 && at + 1 < result.size() && static_cast<unsigned char>(result[at + 1]) < 0xa0;
    if (is_c1) result.replace(at, 2, " ");
  }
  return result;
}

std::string fitted(std::string_view text, std::size_t width) {
  std::string line = harmless(text);
  std::ranges::replace(line, '\n', ' ');
  if (width == 0 || columns(line) <= width) return line;
  std::size_t bytes = 0;
  for (std::size_t count = 0; count + 1 < width; ++count)
    bytes += obs::first_character(std::string_view{line}.substr(bytes)).bytes;
  return line.substr(0, bytes) + "…";
}

std::string clipped(std::string_view painted_text, std::size_t width) {
  if (width == 0) return std::string{painted_text};
  std::string result;
  bool coloured = false;
  for (std::size_t used = 0; !painted_text.empty();) {
    if (painted_text.starts_with("\x1b[")) {
      const auto end = painted_text.find('m');
      if (end == std::string_view::npos) break;
      result += painted_text.substr(0, end + 1);
      painted_text.remove_prefix(end + 1);
      coloured = true;
      continue;
    }
    if (used++ == width) break;
    const auto bytes = obs::first_character(painted_text).bytes;
    result += painted_text.substr(0, bytes);
    painted_text.remove_prefix(bytes);
  }
  return coloured && !painted_text.empty() ? result + "\x1b[0m" : result;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, const std::string& first,
                                 const std::string& rest) {
  std::vector<std::string> lines;
  std::istringstream paragraphs{std::string{text}};
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    std::istringstream words{paragraph};
    const auto& begin = lines.empty() ? first : rest;
    std::string line = begin;
    bool has_words = false;
    for (std::string word; words >> word; has_words = true) {
      if (has_words && width > 0 && columns(line) + 1 + columns(word) > width) {
        lines.push_back(line);
        line = rest;
        has_words = false;
      }
      line += (has_words ? " " : "") + word;
    }
    lines.push_back(has_words ? line : "");
  }
  return lines;
}

void LiveArea::erase() {
  if (drawn_ > 0) out_ << "\x1b[" << drawn_ << "A\r\x1b[J";
  drawn_ = 0;
}

void LiveArea::draw(std::vector<std::string> lines, std::size_t always) {
  // The cursor rests on the line below the last one.
  if (terminal_.height > 2 + always && lines.size() > terminal_.height - 1) {
    const auto kept = terminal_.height - 2 - always;
    const auto omitted = lines.size() - kept - always;
    const auto gap = lines.begin() + static_cast<std::ptrdiff_t>(kept);
    *gap = "… and " + std::to_string(omitted) + " more lines";
    lines.erase(gap + 1, gap + static_cast<std::ptrdiff_t>(omitted));
  }
  erase();
  for (const auto& line : lines) out_ << clipped(line, terminal_.width) << "\n";
  out_.flush();
  drawn_ = lines.size();
}

// Less of a message says nothing.
constexpr std::size_t least_of_last_column = 10;

std::vector<std::string> TextTable::lines(const Terminal& terminal, const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = columns(headings_[column]);
    for (const auto& row : rows_) width = std::max(width, columns(cell_text(row.at(column).text)));
    widths.push_back(width);
  }
  const auto columns_before_last = [&](std::size_t gap) {
    std::size_t used = columns(indent);
    for (std::size_t column = 0; column + 1 < widths.size(); ++column) used += widths[column] + gap;
    return used;
  };
  const auto is_too_narrow = [&](std::size_t used) { return terminal.width > 0 && used > terminal.width; };
  const auto least = std::min(widths.back(), least_of_last_column);
  const bool has_room = !is_too_narrow(columns_before_last(gap_) + least);
  // A short one still fits if all move closer together; a message is better below.
  const bool is_last_below =
      !has_room && (widths.back() > least || is_too_narrow(columns_before_last(1) + least)) && widths.size() > 1;
  const bool is_wide = is_last_below ? !is_too_narrow(columns_before_last(gap_)) : has_room;
  const auto gap = is_wide ? gap_ : 1;
  const auto line = [&](const auto& cell_at) {
    std::string text = indent;
    std::size_t used = columns(indent);
    for (std::size_t column = 0; column < headings_.size(); ++column) {
      const auto& [content, colour] = cell_at(column);
      std::string cell = content;
      const bool last = column + 1 == headings_.size();
      if (last && is_last_below) break;
      if (last && terminal.width > 0) cell = fitted(cell, terminal.width > used + 1 ? terminal.width - used : 1);
      text += painted(cell, colour, terminal.colour);
      if (last) break;
      text += std::string(widths[column] - columns(cell) + gap, ' ');
      used += widths[column] + gap;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::vector<std::string> result;
  result.push_back(line([&](std::size_t column) { return std::pair{headings_[column], Colour::bold}; }));
  for (const auto& row : rows_) {
    result.push_back(
        line([&](std::size_t column) { return std::pair{cell_text(row[column].text), row[column].colour}; }));
    if (!is_last_below || row.back().text.empty()) continue;
    const auto deeper = indent + "  ";
    const auto room = terminal.width > columns(deeper) ? terminal.width - columns(deeper) : 1;
    result.push_back(deeper + painted(fitted(row.back().text, room), row.back().colour, terminal.colour));
  }
  return result;
}

bool natural_less(std::string_view first, std::string_view second) {
  auto left = first;
  auto right = second;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const auto a = take_number(left);
      const auto b = take_number(right);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
      continue;
    }
    if (left.front() != right.front()) return left.front() < right.front();
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.empty() != right.empty()) return left.empty();
  return first < second;  // "a-01" and "a-1" are different names
}

std::string short_duration(async::Duration duration) {
  const auto total = std::max<std::int64_t>(std::chrono::floor<std::chrono::seconds>(duration).count(), 0);
  const auto text = [](std::int64_t amount, const char* unit) { return std::to_string(amount) + unit; };
  const auto two = [&](std::int64_t amount, const char* unit, std::int64_t rest, const char* rest_unit) {
    return text(amount, unit) + (rest > 0 ? text(rest, rest_unit) : "");
  };
  if (total < 120) return text(total, "s");
  if (total < 600) return two(total / 60, "m", total % 60, "s");
  if (total < 3 * 3600) return text(total / 60, "m");
  if (total < 8 * 3600) return two(total / 3600, "h", total % 3600 / 60, "m");
  if (total < 48 * 3600) return text(total / 3600, "h");
  return text(total / 86400, "d");
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace hubferry::app
