#include "phase/own_writes.hpp"

#include <gtest/gtest.h>

namespace hubferry::phase::test {
namespace {

class OwnWritesTest : public testing::Test {
 protected:
  OwnWrites own;
  const Key key{"default", "one"};
};

TEST_F(OwnWritesTest, AChangeOfAResourceThatDoesNotRunIsSomebodyElses) {
  EXPECT_TRUE(own.event(key, "1"));
  EXPECT_EQ(own.size(), 0u);
}

TEST_F(OwnWritesTest, TheEchoOfAWriteIsOursBeforeItsAnswerAndAfterTheMachineHasComeToRest) {
  own.begin(key);
  EXPECT_FALSE(own.event(key, "2"));  // the event comes first
  own.written(key, "2");
  own.written(key, "3");
  EXPECT_FALSE(own.finish(key));
  EXPECT_FALSE(own.event(key, "3"));
  EXPECT_EQ(own.size(), 0u);
  EXPECT_TRUE(own.event(key, "4"));
}

TEST_F(OwnWritesTest, SomebodyElsesChangeBetweenOursIsNotSwallowed) {
  own.begin(key);
  own.written(key, "2");
  EXPECT_FALSE(own.event(key, "2"));
  EXPECT_FALSE(own.event(key, "3"));
  own.written(key, "4");
  EXPECT_FALSE(own.event(key, "4"));
  EXPECT_TRUE(own.finish(key));
  EXPECT_FALSE(own.finish(key));
}

// A list after a broken watch skips versions: the read after the conflict has seen the change all the same.
TEST_F(OwnWritesTest, AChangeThatOnlyTheReadAfterAConflictHasSeenCounts) {
  own.begin(key);
  own.read(key, "2");
  own.written(key, "3");
  EXPECT_FALSE(own.event(key, "3"));
  EXPECT_TRUE(own.finish(key));
}

TEST_F(OwnWritesTest, ReadingOurOwnWriteAgainIsNoChange) {
  own.begin(key);
  own.written(key, "2");
  EXPECT_FALSE(own.event(key, "2"));
  own.read(key, "2");
  EXPECT_FALSE(own.finish(key));
}

TEST_F(OwnWritesTest, EarlierWritesAreForgottenWithALaterEvent) {
  own.begin(key);
  own.written(key, "2");
  own.written(key, "3");
  EXPECT_FALSE(own.finish(key));
  EXPECT_FALSE(own.event(key, "3"));
  EXPECT_EQ(own.size(), 0u);
}

TEST_F(OwnWritesTest, AResourceThatIsGoneIsForgotten) {
  own.begin(key);
  own.written(key, "2");
  EXPECT_FALSE(own.finish(key));
  own.forget(key);
  EXPECT_EQ(own.size(), 0u);
}

}  // namespace
}  // namespace hubferry::phase::test
