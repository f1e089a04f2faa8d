#include "hubferry/obs/log_sink.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <sstream>
#include <thread>

namespace hubferry::obs {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A pipe as small as Linux allows, so that it is soon full.
class SmallPipe {
 public:
  SmallPipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  SmallPipe(const SmallPipe&) = delete;
  SmallPipe& operator=(const SmallPipe&) = delete;
  ~SmallPipe() {
    close_reader();
    close_writer();
  }

  int writer() const { return ends_[1]; }
  void close_reader() { close_end(ends_[0]); }
  void close_writer() { close_end(ends_[1]); }

  /// Reads until `done(text)`, the writer is closed, or nothing comes for unreasonably long.
  template <typename Done>
  std::string read_until(Done done) {
    std::string text;
    char buffer[4096];
    while (!done(text)) {
      pollfd waiting{ends_[0], POLLIN, 0};
      if (poll(&waiting, 1, 20'000) <= 0) break;
      const auto count = read(ends_[0], buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }
  std::string read_all() {
    return read_until([](const std::string&) { return false; });
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  int ends_[2];
};

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(LogSink, FlushedLinesAreInTheDescriptor) {
  SmallPipe pipe;
  LogSink sink{{.fd = pipe.writer()}};
  sink.logger().info("hello");
  EXPECT_TRUE(sink.flush(60s));
  const auto text = pipe.read_until([](const std::string& so_far) { return so_far.ends_with('\n'); });
  EXPECT_THAT(text, HasSubstr(R"("msg":"hello")"));
}

TEST(LogSink, TheDestructorWritesWhatIsLeft) {
  SmallPipe pipe;
  std::thread reader;
  std::string text;
  {
    LogSink sink{{.fd = pipe.writer(), .exit_wait = 60s}};
    for (int i = 0; i < 1000; ++i) sink.logger().info("line", {{"i", i}});
    reader = std::thread([&] { text = pipe.read_all(); });
  }
  pipe.close_writer();
  reader.join();
  EXPECT_EQ(split_lines(text).size(), 1000U);
}

// A stuck log collector must not keep a pod from stopping.
TEST(LogSink, TheDestructorGivesUpOnAPipeThatNobodyReads) {
  SmallPipe pipe;
  LogSink sink{{.fd = pipe.writer(), .exit_wait = 10ms}};
  for (int i = 0; i < 1000; ++i) sink.logger().info("line", {{"i", i}});
}

TEST(LogSink, ABrokenPipeIsNoSignalAndNoHang) {
  SmallPipe pipe;
  pipe.close_reader();
  LogSink sink{{.fd = pipe.writer()}};
  sink.logger().info("into the void");
  EXPECT_TRUE(sink.flush(60s));
  EXPECT_EQ(sink.dropped(), 1U);
}

TEST(LogSink, FlushEndsWhenTheReaderDoesNotRead) {
  SmallPipe pipe;
  LogSink sink{{.fd = pipe.writer(), .exit_wait = 0s}};
  for (int i = 0; i < 1000; ++i) sink.logger().info("line", {{"i", i}});
  EXPECT_FALSE(sink.flush(1ms));
}

TEST(LogSink, WhenFullItDropsAndLaterReportsHowMany) {
  SmallPipe pipe;
  constexpr std::uint64_t logged = 1000;
  LogSink sink{{.fd = pipe.writer(), .queue_bytes = 8192, .exit_wait = 60s}};
  for (std::uint64_t i = 0; i < logged; ++i) sink.logger().info("line", {{"i", i}});
  const auto dropped = sink.dropped();
  EXPECT_GT(dropped, 0U);

  // Now somebody reads: what was kept arrives, and with it the number of those that were not.
  std::thread reader;
  std::string text;
  reader = std::thread([&] {
    text = pipe.read_until([](const std::string& so_far) { return so_far.find("the end") != std::string::npos; });
  });
  EXPECT_TRUE(sink.flush(60s));
  sink.logger().info("the end");
  EXPECT_TRUE(sink.flush(60s));
  reader.join();

  std::uint64_t reported = 0;
  std::uint64_t kept = 0;
  for (const auto& line : split_lines(text)) {
    const auto object = boost::json::parse(line).as_object();
    if (const auto* count = object.if_contains("dropped"))
      reported += count->to_number<std::uint64_t>();
    else if (object.contains("i"))
      ++kept;
  }
  EXPECT_EQ(reported, dropped);
  EXPECT_EQ(kept + reported, logged);
}

TEST(LogSink, ALineThatCanNeverFitIsDroppedAndReported) {
  SmallPipe pipe;
  LogSink sink{{.fd = pipe.writer(), .queue_bytes = 100}};
  sink.logger().info(std::string(200, 'x'));
  EXPECT_TRUE(sink.flush(60s));
  const auto text = pipe.read_until([](const std::string& so_far) { return so_far.ends_with('\n'); });
  EXPECT_THAT(text, HasSubstr(R"("dropped":1)"));
}

TEST(LogSink, TheLevelCanBeChangedWhileRunning) {
  SmallPipe pipe;
  LogSink sink{{.level = Level::error, .fd = pipe.writer()}};
  const auto log = sink.logger();
  log.info("unseen");
  sink.set_level(Level::debug);
  EXPECT_EQ(sink.level(), Level::debug);
  log.debug("seen");
  EXPECT_TRUE(sink.flush(60s));
  const auto text = pipe.read_until([](const std::string& so_far) { return so_far.ends_with('\n'); });
  EXPECT_THAT(text, testing::Not(HasSubstr("unseen")));
}

TEST(LogSink, LoggersMayOutliveIt) {
  SmallPipe pipe;
  Logger log;
  {
    LogSink sink{{.fd = pipe.writer()}};
    log = sink.logger().with("key", "value");
  }
  log.error("too late");
  pipe.close_writer();
  EXPECT_EQ(pipe.read_all(), "");
}

TEST(LogSink, LinesOfManyThreadsStayWhole) {
  SmallPipe pipe;
  constexpr int threads = 4;
  constexpr int each = 500;
  std::string text;
  std::thread reader{[&] { text = pipe.read_all(); }};
  {
    LogSink sink{{.fd = pipe.writer(), .exit_wait = 60s}};
    std::vector<std::thread> writers;
    for (int i = 0; i < threads; ++i)
      writers.emplace_back([log = sink.logger().with("thread", i), &sink] {
        for (int line = 0; line < each; ++line) {
          log.info("line", {{"line", line}});
          sink.set_level(Level::info);
        }
      });
    for (auto& writer : writers) writer.join();
  }
  pipe.close_writer();
  reader.join();

  int next[threads] = {};
  for (const auto& line : split_lines(text)) {
    const auto object = boost::json::parse(line).as_object();
    auto& expected = next[object.at("thread").as_int64()];
    EXPECT_EQ(object.at("line").as_int64(), expected++) << "each thread's lines keep their order";
  }
  for (const int count : next) EXPECT_EQ(count, each);
}

}  // namespace
}  // namespace hubferry::obs
