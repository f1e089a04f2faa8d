#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace hubferry::perf {

/// CPU time of this process so far, all threads.
double cpu_seconds();
/// Resident memory of this process.
double resident_bytes();
/// Bytes that malloc has handed out and not got back.
double allocated_bytes();

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] double cpu() const { return cpu_seconds() - cpu_start_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double cpu_start_ = cpu_seconds();
};

/// One table: a line per measurement, printed as it is known, and written as JSON at the end where asked to.
class Report {
 public:
  /// Reads `--json FILE` from the arguments.
  Report(std::string title, int argc, char** argv);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  /// `goal` is a sentence such as "under 1 KiB"; empty without one.
  void line(std::string_view what, double value, std::string_view unit, std::string_view goal = {});
  /// Something more for the JSON file.
  void add(std::string_view name, boost::json::value value) { more_[name] = std::move(value); }

 private:
  std::string title_;
  std::string json_file_;
  boost::json::array lines_;
  boost::json::object more_;
};

}  // namespace hubferry::perf
