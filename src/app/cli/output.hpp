#pragma once

#include <iosfwd>
#include <stdexcept>
#include <string>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// Indented JSON, one field per line.
std::string to_indented_json(const kube::json::value& value);

/// JSON in one line.
std::string to_json_line(const kube::json::value& value);

/// `value` as YAML in block style; fields keep their order. Strings that YAML would read as something else (a number, a
/// Boolean, null, an indicator character) are quoted.
std::string to_yaml(const kube::json::value& value);

/// A Kubernetes object, or a List of them, with its fields in kubectl's order: apiVersion, kind, metadata with the name
/// first, spec, all others, and status last.
kube::json::object in_usual_order(const kube::json::object& object);

/// The message of an exception for the user. For system errors: without the source location that Boost appends.
std::string message_of(const std::exception& error);

// The reader of our output may close it, as `head -1` does. That is not a failure: the command shuts down as usual,
// cleans up, and prints nothing more.

/// The exit code that a shell reports for a process killed by SIGPIPE.
inline constexpr int sigpipe_exit_code = 141;

/// The output can no longer be written.
class OutputClosed : public std::runtime_error {
 public:
  OutputClosed() : std::runtime_error("cannot write the output") {}
};

/// From now on SIGPIPE does not end the process; it is recorded.
void record_sigpipe();
/// True if a write has failed because the pipe was closed.
bool received_sigpipe();

/// Flushes. Throws OutputClosed.
void flush(std::ostream& out);

/// Never returns; throws OutputClosed when `fd` is a pipe whose reader has closed it. For commands that may write
/// nothing for hours, and so would not notice.
async::Awaitable<> watch_for_closed_output(async::Clock& clock, int fd);

}  // namespace hubferry::app
