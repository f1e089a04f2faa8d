#include "obs/log_writer.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hubferry::obs::detail {

namespace {

// How often a writer that waits for a reader checks whether to give up.
constexpr int look_up_every_ms = 50;

std::size_t safe_piece(int fd) {
  struct stat status{};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return 256UL * 1024;
  // A pipe that polls as writable has room for this much. The descriptor is shared with other processes, so it must
  // not be switched to non-blocking.
  return PIPE_BUF;
}

/// The first `limit` bytes, ending at a line's end where there is one: so that processes that share the descriptor
/// do not tear each other's lines.
std::string_view first_piece(std::string_view lines, std::size_t limit) {
  if (lines.size() <= limit) return lines;
  const auto end = lines.rfind('\n', limit - 1);
  return lines.substr(0, end == std::string_view::npos ? limit : end + 1);
}

}  // namespace

LogWriter::LogWriter(int fd) : fd_(fd), piece_(safe_piece(fd)) {}

std::uint64_t LogWriter::write(std::string_view lines) {
  while (!lines.empty()) {
    if (!wait_until_writable()) break;
    const auto piece = first_piece(lines, piece_);
    const auto written = ::write(fd_, piece.data(), piece.size());
    if (written >= 0)
      lines.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR && errno != EAGAIN)
      break;
  }
  return static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
}

bool LogWriter::wait_until_writable() {
  for (;;) {
    pollfd entry{.fd = fd_, .events = POLLOUT, .revents = 0};
    // Errors count as writable: write() then returns them.
    if (poll(&entry, 1, look_up_every_ms) > 0) return true;
    if (std::chrono::steady_clock::now() >= give_up_at_.load()) return false;
  }
}

}  // namespace hubferry::obs::detail
