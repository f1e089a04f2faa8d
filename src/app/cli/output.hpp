#pragma once

#include <iosfwd>
#include <stdexcept>
#include <string>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

// Whoever reads our output may stop reading, as `head -1` does. That is no failure: what runs ends in order, tidies up,
// and says nothing.

/// What the shell reports of a process that SIGPIPE ended.
inline constexpr int exit_code_of_a_closed_pipe = 141;

/// The output can no longer be written.
class OutputClosed : public std::runtime_error {
 public:
  OutputClosed() : std::runtime_error("cannot write the output") {}
};

/// From now on SIGPIPE ends nothing by itself; it is noted.
void note_closed_pipes();
/// Has a write met a pipe that nobody reads?
bool has_met_a_closed_pipe();

/// Lets what was written go out. Throws OutputClosed.
void flush(std::ostream& out);

/// What a person should read of an exception: of errors that a system reports, not where in our sources it met them.
std::string sentence_of(const std::exception& error);

/// Returns never; throws OutputClosed when `fd` is a pipe that nobody reads any more. For what may write nothing for
/// hours: it would not notice.
async::Awaitable<> until_unread(async::Clock& clock, int fd);

}  // namespace hubferry::app
