#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace hubferry::app {

/// What is known of the screen that output goes to.
struct Terminal {
  bool interactive = false;  // a terminal, not a pipe or a file
  bool colour = false;       // interactive, and NO_COLOR is not set
  std::size_t width = 0;     // 0: as wide as need be
  std::size_t height = 0;    // 0: as high as need be

  /// Asks the operating system about the file descriptor, and the environment about NO_COLOR.
  static Terminal of(int fd);
};

enum class Colour { plain, red, green, yellow, blue, dim, bold };

/// `text` in that colour where `on`, as it is otherwise.
std::string painted(std::string_view text, Colour colour, bool on);

/// How many columns `text` takes, if every character takes one.
std::size_t columns(std::string_view text);

/// `text` on one line and in at most `width` columns (0: any number), ending in "…" where something was left out.
/// Control characters become blanks: what comes from a server must not steer the terminal.
std::string fitted(std::string_view text, std::size_t width);

/// The beginning of a painted text that takes at most `width` columns (0: all of it); colours take none.
std::string clipped(std::string_view painted_text, std::size_t width);

/// `text` in lines of at most `width` columns (0: any number), broken between words; a word that is longer has a line
/// for itself. The first line begins with `first`, the others with `rest`. A line break in `text` stays one.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, const std::string& first = "",
                                 const std::string& rest = "");

/// A few lines at the end of the output that change in place.
class LiveArea {
 public:
  LiveArea(std::ostream& out, Terminal terminal) : out_(out), terminal_(terminal) {}

  /// The window has another size now.
  void resize(const Terminal& terminal) { terminal_ = terminal; }
  /// Replaces what was drawn before. Lines are cut where the screen ends. Of more lines than fit the first ones are
  /// drawn, a line that tells how many are left out, and the last `always` ones.
  void draw(std::vector<std::string> lines, std::size_t always = 0);
  /// Prints lines above the area, for good.
  void print_above(const std::vector<std::string>& lines);
  /// Leaves what is drawn on the screen; the next draw() begins below.
  void keep() { drawn_ = 0; }
  /// Takes what is drawn off the screen.
  void erase();

 private:
  std::ostream& out_;
  Terminal terminal_;
  std::size_t drawn_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace hubferry::app
