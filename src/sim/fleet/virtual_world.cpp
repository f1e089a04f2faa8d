#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::sim {

VirtualWorld::VirtualWorld(WorldOptions options)
    : random_(options.seed),
      env_{loop_.clock(), random_, metrics_, obs::Logger{}},
      world_(std::move(options), loop_.executor(), env_),
      scope_(loop_.executor()) {
  loop_.run(world_.build());
  scope_.spawn(world_.run());
  loop_.run(world_.wait_settled());
}

VirtualWorld::~VirtualWorld() {
  stop();
}

void VirtualWorld::stop() {
  scope_.stop();
  loop_.run(scope_.join());
}

}  // namespace hubferry::sim
