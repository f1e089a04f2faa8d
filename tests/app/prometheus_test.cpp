#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "manager_process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

std::string body_of(const std::string& response) {
  return response.substr(response.find("\r\n\r\n") + 4);
}

// Debian's own promtool, on what a scrape gets.
TEST(Prometheus, PromtoolAcceptsTheMetrics) {
  ManagerProcess manager;
  TemporaryDirectory directory;
  TcpClient client{manager.metrics_port()};
  const auto file = directory.file("metrics");
  std::ofstream{file} << body_of(client.get("/metrics"));
  Process promtool{{"sh", "-c", "promtool check metrics < " + file}};
  EXPECT_EQ(promtool.wait(), 0);
  EXPECT_THAT(promtool.out() + promtool.err(), IsEmpty());
}

/// A Prometheus that scrapes one target, and can be asked.
class PrometheusProcess {
 public:
  explicit PrometheusProcess(std::uint16_t target) : process_(command(target)) {}

  /// The result of a query, or an empty array while there is none.
  boost::json::array query(const std::string& expression) {
    try {
      TcpClient client{port_};
      const auto response = client.get("/api/v1/query?query=" + expression, "Connection: close\r\n");
      const auto answer = boost::json::parse(body_of(response));
      return answer.at("data").at("result").as_array();
    } catch (const std::exception&) {
      return {};  // it is not up yet
    }
  }

  Process& process() { return process_; }

 private:
  std::vector<std::string> command(std::uint16_t target) const {
    const auto config = directory_.file("prometheus.yml");
    std::ofstream{config} << "scrape_configs:\n"
                          << "- job_name: hubferry\n"
                          << "  scrape_interval: 1s\n"
                          << "  scrape_timeout: 1s\n"
                          << "  static_configs:\n"
                          << "  - targets: ['127.0.0.1:" << target << "']\n";
    return {"prometheus", "--config.file=" + config, "--storage.tsdb.path=" + directory_.file("data"),
            "--web.listen-address=127.0.0.1:" + std::to_string(port_)};
  }

  TemporaryDirectory directory_;
  std::uint16_t port_ = free_port();
  Process process_;
};

TEST(Prometheus, ARealPrometheusScrapesTheManager) {
  ManagerProcess manager;
  PrometheusProcess prometheus{manager.metrics_port()};
  const auto give_up = std::chrono::steady_clock::now() + Process::timeout;
  boost::json::array up;
  while (up.empty() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(100ms);
    up = prometheus.query("up==1");
  }
  EXPECT_EQ(up.size(), 1U) << "the target is up\n" << prometheus.process().err();
  EXPECT_EQ(prometheus.query("hubferry_build_info").size(), 1U);
  EXPECT_EQ(prometheus.query("process_cpu_seconds_total").size(), 1U) << "counters keep their name in OpenMetrics";
  prometheus.process().signal(SIGTERM);
  EXPECT_EQ(prometheus.process().wait(), 0);
}

}  // namespace
}  // namespace hubferry::test
