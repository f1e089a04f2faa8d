#include "real_mysql_test.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;

/// Failovers in a row under a client that writes all the time. HUBFERRY_FAILOVERS says how many. With
/// HUBFERRY_SEMI_SYNC=off acknowledged writes may be lost: then they are only counted, and the client pauses after each
/// write, for HUBFERRY_CLIENT_PAUSE milliseconds.
class RealManyFailoversTest : public RealMysqlTest {
 protected:
  enum class Fault { kill, stop, cut };
  struct Times {
    std::vector<double> outages;
    std::vector<double> promotions;  // of it from the third failed probe
    [[nodiscard]] std::vector<double> detections() const {
      auto list = outages;
      for (std::size_t at = 0; at < list.size(); ++at) list[at] -= promotions[at];
      return list;
    }
  };

  void cause(Fault fault, const std::string& pod) {
    if (fault == Fault::cut) runner.cut_off(pod);
    if (fault != Fault::cut) runner.signal_server(pod, fault == Fault::kill ? SIGKILL : SIGSTOP);
  }
  /// As the documentation says: the data of those that are reported is given up, and they begin again.
  void rebuild_errant() {
    // Without this the new server may never catch up: it replays everything, while the client writes on.
    scope.stop(*writing);
    const auto reported = condition_message("ReplicasHealthy");
    for (const std::string pod : {"demo-0", "demo-1", "demo-2"}) {
      if (reported.find(pod + ": ") == std::string::npos) continue;
      runner.lose_volume(pod);
      EXPECT_TRUE(loop.run(server.api().remove(kinds::pods, {"db", pod})));
    }
    EXPECT_TRUE(eventually([&] { return is_settled(); })) << status_text();
    writing = scope.spawn(writer.run());
  }
  async::TaskScope::Child* writing = nullptr;

  static std::string percentiles(std::vector<double> values) {
    if (values.empty()) return "-";
    std::ranges::sort(values);
    const auto at = [&](double part) {
      return values[std::min(values.size() - 1, static_cast<std::size_t>(part * double(values.size())))];
    };
    char text[64];
    std::snprintf(text, sizeof text, "p50 %.1f s, p99 %.1f s", at(0.5), at(0.99));
    return text;
  }
};

TEST_F(RealManyFailoversTest, ByKillHangAndCutOffInTurnsNoAcknowledgedWriteIsLost) {
  const char* wanted = std::getenv("HUBFERRY_FAILOVERS");
  const int count = wanted == nullptr ? 3 : std::atoi(wanted);
  const char* semi_sync = std::getenv("HUBFERRY_SEMI_SYNC");
  const bool may_lose = semi_sync != nullptr && std::string_view{semi_sync} == "off";
  runner.behind_proxies = true;
  given_running(std::string{R"({"replicas": 3, "failoverCoolDownSeconds": 0, "semiSync": )"} +
                (may_lose ? "false}" : "true}"));
  // Nothing else slows it down then, and replicas that lag are not promoted.
  const char* pause = std::getenv("HUBFERRY_CLIENT_PAUSE");
  if (may_lose) writer.pause = std::chrono::milliseconds{pause == nullptr ? 5 : std::atoi(pause)};
  writing = scope.spawn(writer.run());
  std::map<Fault, Times> times;
  int errant = 0;
  for (int turn = 0; turn < count; ++turn) {
    const auto before = writer.acknowledged().size();
    ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > before + 20; })) << status_text();
    const auto old = primary();
    writer.take_longest_pause();
    const auto fault = static_cast<Fault>(turn % 3);
    cause(fault, old);
    const auto is_errant = [&] { return condition("ReplicasHealthy") == "False ErrantTransactions"; };
    ASSERT_TRUE(eventually([&] { return primary() != old && (is_settled() || (may_lose && is_errant())); }))
        << "turn " << turn << status_text() << runner.log_of(old);
    const auto after = writer.acknowledged().size();
    ASSERT_TRUE(eventually([&] { return writer.acknowledged().size() > after + 5; })) << status_text();
    times[fault].outages.push_back(std::chrono::duration<double>(writer.take_longest_pause()).count());
    times[fault].promotions.push_back(cluster().find({"status", "lastFailover", "seconds"})->to_number<double>());
    if (is_errant()) {
      ++errant;
      rebuild_errant();
    }
  }
  const auto lost = missing(writer).size();
  if (!may_lose) EXPECT_EQ(lost, 0U);
  EXPECT_THAT(writable(), ElementsAre(primary()));
  std::printf(
      "%d failovers: %zu writes acknowledged, %zu of them lost, %zu refused or without an answer; %d old "
      "primaries with transactions of their own\n",
      count, writer.acknowledged().size(), lost, writer.refused(), errant);
  for (const auto& [fault, of] : times)
    std::printf("%s: write outage %s; detection %s; from the third failed probe %s\n",
                fault == Fault::kill   ? "kill -9"
                : fault == Fault::stop ? "SIGSTOP"
                                       : "cut off",
                percentiles(of.outages).c_str(), percentiles(of.detections()).c_str(),
                percentiles(of.promotions).c_str());
}

}  // namespace
}  // namespace hubferry::mysql::test
