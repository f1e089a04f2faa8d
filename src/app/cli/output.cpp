#include "app/cli/output.hpp"

#include <poll.h>

#include <atomic>
#include <boost/system/system_error.hpp>
#include <csignal>
#include <ostream>

namespace hubferry::app {

namespace {

// The signal belongs to the process, and so does this.
std::atomic<bool> closed_pipe_met{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

}  // namespace

void note_closed_pipes() {
  struct sigaction action{};
  action.sa_handler = [](int) { closed_pipe_met = true; };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

bool has_met_a_closed_pipe() {
  return closed_pipe_met;
}

void flush(std::ostream& out) {
  if (!out.flush()) throw OutputClosed{};
}

std::string sentence_of(const std::exception& error) {
  const std::string text = error.what();
  const bool has_place = dynamic_cast<const boost::system::system_error*>(&error) != nullptr;
  return has_place ? text.substr(0, text.find(" [")) : text;
}

async::Awaitable<> until_unread(async::Clock& clock, int fd) {
  for (;;) {
    co_await clock.sleep_for(std::chrono::seconds{1});
    pollfd asked{.fd = fd, .events = 0, .revents = 0};
    if (::poll(&asked, 1, 0) == 1 && (asked.revents & POLLERR) != 0) {
      closed_pipe_met = true;
      throw OutputClosed{};
    }
  }
}

}  // namespace hubferry::app
