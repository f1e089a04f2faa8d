#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <sstream>

#include "hubferry/obs/build_info.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::obs {

namespace {

/// Values of /proc/self/stat, in seconds and bytes.
struct ProcessStat {
  double cpu_seconds;
  double start_seconds_after_boot;
  double virtual_bytes;
  double resident_bytes;
};

std::optional<ProcessStat> read_stat() {
  std::ifstream file{"/proc/self/stat"};
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The program's name stands in parentheses and may itself contain spaces and parentheses.
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest{line.substr(name_end + 1)};
  // proc(5) numbers the fields from 1; the state, right after the name, is field 3.
  constexpr std::size_t state_field = 3;
  std::array<std::string, 22> fields;
  for (auto& field : fields)
    if (!(rest >> field)) return std::nullopt;
  const auto field = [&](std::size_t number) { return std::stod(fields[number - state_field]); };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessStat{.cpu_seconds = (field(14) + field(15)) / ticks,
                     .start_seconds_after_boot = field(22) / ticks,
                     .virtual_bytes = field(23),
                     .resident_bytes = field(24) * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

double boot_time() {
  std::ifstream file{"/proc/stat"};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  return 0;
}

std::optional<double> count_open_fds() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return std::nullopt;
  double count = 0;
  while (const auto* entry = readdir(directory))
    if (entry->d_name[0] != '.') ++count;
  closedir(directory);
  return count - 1;  // without the one that was opened for counting
}

double max_fds() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void add_process_metrics(Metrics& metrics) {
  auto& cpu = metrics.counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.");
  auto& resident = metrics.gauge("process_resident_memory_bytes", "Resident memory size in bytes.");
  auto& virtual_memory = metrics.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.");
  auto& open_fds = metrics.gauge("process_open_fds", "Number of open file descriptors.");
  auto& most_fds = metrics.gauge("process_max_fds", "Maximum number of open file descriptors.");
  auto& start = metrics.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.");
  if (const auto stat = read_stat()) start.set(boot_time() + stat->start_seconds_after_boot);
  metrics.on_collect([&] {
    most_fds.set(max_fds());
    if (const auto count = count_open_fds()) open_fds.set(*count);
    const auto stat = read_stat();
    if (!stat) return;
    cpu.increment(stat->cpu_seconds - cpu.value());
    resident.set(stat->resident_bytes);
    virtual_memory.set(stat->virtual_bytes);
  });
}

void add_build_info(Metrics& metrics) {
  const auto& build = build_info();
  metrics
      .gauge_family("hubferry_build_info", "What this process was built from; always 1.",
                    {"version", "revision", "compiler"})
      .with({build.version, build.revision, build.compiler})
      .set(1);
}

}  // namespace hubferry::obs
