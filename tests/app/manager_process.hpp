#pragma once

#include <boost/json.hpp>
#include <sstream>

#include "support/process.hpp"
#include "support/tcp_client.hpp"

namespace hubferry::test {

/// `hubferry manager` on ports of its own, started and serving.
class ManagerProcess {
 public:
  explicit ManagerProcess(const std::vector<std::string>& more_flags = {})
      : process_(command(more_flags)),
        metrics_port_(port_in_log("serving metrics")),
        health_port_(port_in_log("serving health probes")) {
    process_.await_error_text("migration cache synced");
  }

  Process& process() { return process_; }
  std::uint16_t metrics_port() const { return metrics_port_; }
  std::uint16_t health_port() const { return health_port_; }

  static std::vector<std::string> command(const std::vector<std::string>& more_flags) {
    std::vector<std::string> words{hubferry_binary(), "manager", "--metrics-bind-address=127.0.0.1:0",
                                   "--health-probe-bind-address=127.0.0.1:0"};
    words.insert(words.end(), more_flags.begin(), more_flags.end());
    return words;
  }

 private:
  std::uint16_t port_in_log(const std::string& message) {
    std::istringstream lines{process_.await_error_text(message)};
    for (std::string line; std::getline(lines, line);) {
      const auto object = boost::json::parse(line).as_object();
      if (object.at("msg") == boost::json::string_view(message)) return object.at("port").to_number<std::uint16_t>();
    }
    throw std::runtime_error("no port in the log");
  }

  Process process_;
  std::uint16_t metrics_port_;
  std::uint16_t health_port_;
};

}  // namespace hubferry::test
