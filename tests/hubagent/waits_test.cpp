#include "hubferry/hubagent/waits.hpp"

#include <gmock/gmock.h>

namespace hubferry::hubagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Waits, ClustersOfAMigrationAreGroupedByWhatTheyWaitForNow) {
  Waits waits;
  {
    Waits::Entry one{waits, "uid-1", "a", "agent sleeps"};
    const Waits::Entry two{waits, "uid-1", "b", "agent sleeps"};
    const Waits::Entry other{waits, "uid-2", "c", "agent sleeps"};
    EXPECT_THAT(waits.of("uid-1"), ElementsAre(Pair("agent sleeps", ElementsAre("a", "b"))));
    one.replace("agent wakes up");
    EXPECT_THAT(waits.of("uid-1"),
                ElementsAre(Pair("agent sleeps", ElementsAre("b")), Pair("agent wakes up", ElementsAre("a"))));
  }
  EXPECT_THAT(waits.of("uid-1"), IsEmpty());
}

// The target waits for all from the beginning: for those that the source still has, that is no news.
TEST(Waits, WhatIsWaitedForTooEarlyIsNotSaidWhileTheClusterWaitsForSomethingElse) {
  Waits waits;
  const Waits::Entry early_a{waits, "uid-1", "a", "agent has not registered", true};
  const Waits::Entry early_b{waits, "uid-1", "b", "agent has not registered", true};
  const Waits::Entry early_c{waits, "uid-1", "c", "agent has not registered", true};
  EXPECT_THAT(waits.of("uid-1", {"b"}), ElementsAre(Pair("agent has not registered", ElementsAre("a", "c"))));
  const Waits::Entry now{waits, "uid-1", "a", "copy is not accepted"};
  EXPECT_THAT(waits.of("uid-1", {"b"}), ElementsAre(Pair("agent has not registered", ElementsAre("c")),
                                                    Pair("copy is not accepted", ElementsAre("a"))));
}

}  // namespace
}  // namespace hubferry::hubagent
