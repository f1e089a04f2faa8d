#include "forked.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace hubferry::worlds {

namespace {

int report_to = -1;  // in a clone

std::string read_all(int from) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto count = ::read(from, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// A clone lives for a moment: what it frees need not go back to the kernel, which would hand it out again page by
/// page.
void keep_memory() {
  constexpr int all = 1 << 30;
  ::mallopt(M_TRIM_THRESHOLD, all);
  ::mallopt(M_MMAP_THRESHOLD, all);
  ::mallopt(M_TOP_PAD, 1 << 24);
}

// How much longer a clone may take than its CPU time, on a machine that has much else to do.
constexpr unsigned patience = 30;

// The last character of each report: one that was cut off lacks it.
constexpr char complete = '\x04';

}  // namespace

std::optional<Report> clone(unsigned seconds) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error(std::string{"no pipe: "} + std::strerror(errno));
  // What is buffered would be written twice.
  std::cout.flush();
  std::fflush(nullptr);
  const auto child = ::fork();
  if (child < 0) throw std::runtime_error(std::string{"no process: "} + std::strerror(errno));
  if (child == 0) {
    ::close(ends[0]);
    if (report_to >= 0) ::close(report_to);
    report_to = ends[1];
    keep_memory();
    // By CPU time: on a busy machine a world may take as long as it likes.
    ::signal(SIGPROF, SIG_DFL);
    itimerval limit{};
    limit.it_value.tv_sec = seconds;
    ::setitimer(ITIMER_PROF, &limit, nullptr);
    // One that waits for something uses no CPU time, and nothing in a world may wait for long.
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(patience * seconds);
    return std::nullopt;
  }
  ::close(ends[1]);
  Report report{read_all(ends[0]), {}};
  ::close(ends[0]);
  int status = 0;
  rusage used{};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  report.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  if (!report.text.empty() && report.text.back() == complete) {
    report.text.pop_back();
  } else if (WIFSIGNALED(status)) {
    report.crash = std::string{"crashed: "} + ::strsignal(WTERMSIG(status));
    if (WTERMSIG(status) == SIGPROF) report.crash = "not done after " + std::to_string(seconds) + " s of CPU time";
    if (WTERMSIG(status) == SIGALRM) report.crash = "not done after " + std::to_string(patience * seconds) + " s";
  } else {
    report.crash = "ended without a report";
  }
  return report;
}

void report_and_exit(const std::string& text) {
  const auto all = text + complete;
  std::size_t written = 0;
  while (written < all.size()) {
    const auto count = ::write(report_to, all.data() + written, all.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  ::_exit(0);
}

Report run_in_clone(const std::function<std::string()>& body, unsigned seconds) {
  if (auto report = clone(seconds)) return *report;
  std::string text;
  try {
    text = body();
  } catch (const std::exception& failure) {
    text = std::string{"exception: "} + failure.what();
  }
  report_and_exit(text);
}

}  // namespace hubferry::worlds
