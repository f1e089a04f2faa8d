#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::test {

/// A world that prints its timeline when the test has failed: the seed, and all requests to all servers.
class TracedWorld : public sim::VirtualWorld {
 public:
  using sim::VirtualWorld::VirtualWorld;
  ~TracedWorld() {
    if (testing::Test::HasFailure()) std::cerr << timeline();
  }
};

}  // namespace hubferry::test
