#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

/// Properties of the output device.
struct Terminal {
  bool interactive = false;  // a terminal, not a pipe or a file
  bool colour = false;       // interactive, and NO_COLOR is not set
  std::size_t width = 0;     // 0: unlimited
  std::size_t height = 0;    // 0: unlimited

  /// Queries the file descriptor, and the environment for NO_COLOR and TERM.
  static Terminal of(int fd);
};

enum class Colour { plain, red, green, yellow, blue, dim, bold };

/// `text` in that colour if `on`, otherwise unchanged.
std::string painted(std::string_view text, Colour colour, bool on);

/// The width of `text`, at one column per character.
std::size_t columns(std::string_view text);

/// `text` with blanks for control characters, except for ends of lines: text from a server must not control the
/// terminal.
std::string harmless(std::string_view text);

/// `text` on one line of at most `width` columns (0: unlimited), ending in "…" if it was truncated. It is
/// harmless().
std::string fitted(std::string_view text, std::size_t width);

/// The first `width` columns of a painted text (0: all of it); colour codes take no column.
std::string clipped(std::string_view painted_text, std::size_t width);

/// `text` wrapped at word boundaries to `width` columns (0: unlimited); a longer word gets its own line. The first line
/// begins with `first`, the others with `rest`. Line breaks in `text` are kept.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, const std::string& first = "",
                                 const std::string& rest = "");

/// Lines at the end of the output that are redrawn in place.
class LiveArea {
 public:
  LiveArea(std::ostream& out, Terminal terminal) : out_(out), terminal_(terminal) {}

  /// The window's size has changed.
  void resize(const Terminal& terminal) { terminal_ = terminal; }
  /// Replaces what was drawn before. Lines are truncated to the screen's width. If there are too many, it draws the
  /// first ones, the number of those omitted, and the last `always` ones.
  void draw(std::vector<std::string> lines, std::size_t always = 0);
  /// Leaves the drawn lines on the screen; the next draw() begins below them.
  void keep() { drawn_ = 0; }
  /// Erases the drawn lines.
  void erase();

 private:
  std::ostream& out_;
  Terminal terminal_;
  std::size_t drawn_ = 0;
};

/// Rows below a heading, aligned as in kubectl.
class TextTable {
 public:
  struct Cell {
    std::string text;
    Colour colour = Colour::plain;

    Cell(std::string content, Colour paint = Colour::plain) : text(std::move(content)), colour(paint) {}
    Cell(const char* content) : text(content) {}
  };

  /// `gap`: the minimum number of blanks between columns.
  explicit TextTable(std::vector<std::string> headings, std::size_t gap = 3)
      : headings_(std::move(headings)), gap_(gap) {}

  /// One cell per heading. Empty cells are printed as "-".
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Each line begins with `indent`. Only the last column is truncated to the terminal's width; where the others leave
  /// no room for it, it has a line of its own below each row.
  [[nodiscard]] std::vector<std::string> lines(const Terminal& terminal, const std::string& indent = "") const;

 private:
  std::vector<std::string> headings_;
  std::size_t gap_;
  std::vector<std::vector<Cell>> rows_;
};

/// Natural sort order: "cluster-2" before "cluster-10". Runs of digits compare as numbers, the rest as text.
bool natural_less(std::string_view first, std::string_view second);

/// A duration as kubectl prints ages: "45s", "3m20s", "75m", "5h10m", "3d".
std::string short_duration(async::Duration duration);

/// "1 cluster", "2 clusters".
std::string plural(std::size_t count, const std::string& noun);

}  // namespace hubferry::app
