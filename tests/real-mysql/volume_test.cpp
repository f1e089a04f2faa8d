// A volume without space, and the demo as people start it.
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "real_mysql_test.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"

namespace hubferry::mysql::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The volume of demo-0 is a small file system in memory.
class RealVolumeTest : public RealMysqlTest {
 protected:
  RealVolumeTest() {
    fs::create_directories(home);
    is_mounted = ::mount("tmpfs", home.c_str(), "tmpfs", 0, "size=300m") == 0;
  }
  ~RealVolumeTest() override {
    if (is_mounted) ::umount2(home.c_str(), MNT_DETACH);
  }
  /// Takes all of its space but this much.
  void leave_free(std::uint64_t bytes) {
    struct statvfs space{};
    ASSERT_EQ(::statvfs(home.c_str(), &space), 0);
    const auto free = space.f_bavail * space.f_bsize;
    if (free <= bytes) return;
    std::ofstream file{home + "/filler", std::ios::app};
    const std::string block(1 << 16, 'x');
    for (auto left = free - bytes; left > 0 && file; left -= std::min<std::uint64_t>(left, block.size()))
      file.write(block.data(), static_cast<std::streamsize>(std::min<std::uint64_t>(left, block.size())));
  }

  const std::string home = runner.volume_directory("demo-0");
  bool is_mounted = false;
};

TEST_F(RealVolumeTest, AVolumeThatFillsIsReportedBeforeItIsFullAndNothingAcknowledgedIsLost) {
  if (!is_mounted) GTEST_SKIP() << "only root may mount a file system; VolumesTest has servers in memory";
  given_running(R"({"replicas": 1})");
  EXPECT_TRUE(eventually([&] { return condition("VolumesHealthy") == "True SpaceLeft"; })) << status_text();
  query("demo-0", "CREATE TABLE app.large (id INT PRIMARY KEY, data LONGBLOB)");
  leave_free(10 << 20);
  EXPECT_TRUE(eventually([&] { return condition("VolumesHealthy") == "False VolumeFull"; })) << status_text();
  // Sent after the status was written.
  EXPECT_TRUE(eventually([&] { return events("VolumeFull") == 1; })) << status_text();
  EXPECT_EQ(value("demo-0", "@@global.read_only"), "0") << "it is reported, nothing else";
  // Then it is full: writes are refused, hang, or the server crashes.
  int acknowledged = 0;
  const auto insert = [&](int number) {
    const auto statement = "INSERT INTO app.large VALUES (" + std::to_string(number) + ", REPEAT('x', 1000000))";
    return loop.run(query_as("demo-0", statement, root())).has_value();
  };
  while (acknowledged < 50 && insert(acknowledged + 1)) ++acknowledged;
  EXPECT_LT(acknowledged, 50);
  fs::remove(home + "/filler");
  EXPECT_TRUE(eventually([&] {
    // As a kubelet does; a server that crashes takes a while to end.
    if (runner.server_of("demo-0") == 0) loop.run(runner.restart_server("demo-0"));
    return condition("VolumesHealthy") == "True SpaceLeft" && condition("PrimaryHealthy") == "True HeartbeatOK";
  })) << status_text()
      << runner.log_of("demo-0");
  const auto rows =
      value("demo-0", "(SELECT COUNT(*) FROM app.large WHERE id <= " + std::to_string(acknowledged) + ")");
  EXPECT_EQ(rows, std::to_string(acknowledged));
  // A statement that waits for space looks for it once a minute, and holds up the next.
  int next = 1000;
  EXPECT_TRUE(eventually([&] { return insert(next++); })) << status_text() << runner.log_of("demo-0");
}

// A server deletes the temporary tables of others that have the same TMPDIR.
TEST(ChildProcess, TheGivenVariablesReplaceThoseOfThisProcess) {
  const app::TemporaryDirectory directory{"hubferry-child-"};
  ::setenv("HUBFERRY_CHILD", "inherited", 1);
  app::ChildProcess::Options options;
  options.log = (directory.path() / "log").string();
  options.environment = {"HUBFERRY_CHILD=given"};
  app::ChildProcess child{{"env"}, options};
  EXPECT_EQ(child.wait(), 0);
  ::unsetenv("HUBFERRY_CHILD");
  const auto text = app::read_file(options.log);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("HUBFERRY_CHILD=given\n"), testing::Not(HasSubstr("inherited"))));
}

TEST(RealMysqlDemo, ShowsAFailoverInWhichNoAcknowledgedWriteIsLost) {
  const auto demo = sim::run(hubferry::test::hubferry_binary() + " demo --mysql");
  EXPECT_EQ(demo.status, 0) << demo.output;
  for (const auto* text : {"kill -9 of the primary demo-0", "chosen: demo-", "client: writes are acknowledged again",
                           "demo-0 is back as a replica of demo-", "0 of them are missing"})
    EXPECT_THAT(demo.output, HasSubstr(text));
  EXPECT_THAT(demo.output, testing::ContainsRegex("Success: [0-9]+ writes were acknowledged"));
}

}  // namespace
}  // namespace hubferry::mysql::test
