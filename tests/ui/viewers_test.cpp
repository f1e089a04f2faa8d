#include "ui/viewers.hpp"

#include <gtest/gtest.h>

#include "hubferry/async/virtual_loop.hpp"

namespace hubferry::ui {
namespace {

using namespace std::chrono_literals;

class ViewersTest : public testing::Test {
 protected:
  std::optional<std::string> next(obs::HttpBodyStream& stream) { return loop_.run(stream.next()); }

  async::VirtualLoop loop_;
};

TEST_F(ViewersTest, AViewerGetsTheSnapshotFirstAndThenEveryEvent) {
  Viewers viewers{loop_.clock(), {}};
  const auto stream = viewers.join("snapshot;");
  viewers.publish("one;");
  viewers.publish("two;");
  EXPECT_EQ(next(*stream), "snapshot;one;two;");
  viewers.publish("three;");
  EXPECT_EQ(next(*stream), "three;");
}

TEST_F(ViewersTest, ASilentStreamSendsACommentSoThatProxiesKeepIt) {
  Viewers viewers{loop_.clock(), {.silence = 15s}};
  const auto stream = viewers.join("snapshot;");
  next(*stream);
  const auto before = loop_.clock().now();
  EXPECT_EQ(next(*stream), ":\n\n");
  EXPECT_EQ(loop_.clock().now() - before, 15s);
}

TEST_F(ViewersTest, AViewerThatDoesNotKeepUpIsCutOffAndCostsNoMoreMemory) {
  Viewers viewers{loop_.clock(), {.queued_bytes = 100}};
  const auto slow = viewers.join("snapshot;");
  const auto quick = viewers.join("snapshot;");
  for (int event = 0; event < 1000; ++event) {
    viewers.publish(std::string(50, 'x'));
    EXPECT_TRUE(next(*quick)) << "it is not punished for the other";
  }
  EXPECT_FALSE(next(*slow));
}

TEST_F(ViewersTest, OneMoreThanTheLimitIsRefusedUntilAnotherLeaves) {
  Viewers viewers{loop_.clock(), {.viewers = 2}};
  auto first = viewers.join("a");
  const auto second = viewers.join("b");
  EXPECT_EQ(viewers.join("c"), nullptr);
  first.reset();
  EXPECT_NE(viewers.join("c"), nullptr);
}

TEST_F(ViewersTest, AStreamEndsAfterItsTimeSoThatItsTokenIsReviewedAgain) {
  Viewers viewers{loop_.clock(), {.silence = 15s, .longest = 1min}};
  const auto stream = viewers.join("snapshot;");
  const auto before = loop_.clock().now();
  int comments = -1;  // the first part is the snapshot
  while (next(*stream)) ++comments;
  EXPECT_EQ(comments, 3);
  EXPECT_EQ(loop_.clock().now() - before, 1min);
}

TEST_F(ViewersTest, StreamsEndWithTheirViewers) {
  auto viewers = std::make_unique<Viewers>(loop_.clock(), Viewers::Limits{});
  const auto stream = viewers->join("snapshot;");
  viewers.reset();
  EXPECT_FALSE(next(*stream));
}

}  // namespace
}  // namespace hubferry::ui
