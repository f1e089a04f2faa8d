#include "report.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hubferry::perf {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
  std::ifstream statm{"/proc/self/statm"};
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double allocated_bytes() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

Report::Report(std::string title, int argc, char** argv) : title_(std::move(title)) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string_view{argv[i]} == "--json") json_file_ = argv[i + 1];
  std::printf("%-52s %14s %-14s %s\n", title_.c_str(), "measured", "", "goal");
}

Report::~Report() {
  if (json_file_.empty()) return;
  std::ofstream out{json_file_};
  more_["title"] = title_;
  more_["lines"] = std::move(lines_);
  out << more_ << "\n";
}

void Report::line(std::string_view what, double value, std::string_view unit, std::string_view goal) {
  std::printf("%-52.*s %14.*f %-14.*s %.*s\n", static_cast<int>(what.size()), what.data(), value < 100 ? 2 : 0, value,
              static_cast<int>(unit.size()), unit.data(), static_cast<int>(goal.size()), goal.data());
  std::fflush(stdout);
  lines_.push_back(boost::json::object{{"what", what}, {"value", value}, {"unit", unit}, {"goal", goal}});
}

}  // namespace hubferry::perf
