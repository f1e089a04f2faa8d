#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::test {

/// A world that tells its story when the test has failed: the seed, and all requests to all servers.
class ToldWorld : public sim::VirtualWorld {
 public:
  using sim::VirtualWorld::VirtualWorld;
  ~ToldWorld() {
    if (testing::Test::HasFailure()) std::cerr << timeline();
  }
};

}  // namespace hubferry::test
