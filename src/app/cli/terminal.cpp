#include "app/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

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

std::string fitted(std::string_view text, std::size_t width) {
  std::string line = obs::to_utf8(text);
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
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
  lines_ = std::move(lines);
}

void LiveArea::print_above(const std::vector<std::string>& lines) {
  const auto area = lines_;
  const bool visible = drawn_ > 0;
  erase();
  for (const auto& line : lines) out_ << line << "\n";
  if (visible) draw(area);
}

}  // namespace hubferry::app
