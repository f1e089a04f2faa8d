#pragma once

#include <map>
#include <string>
#include <vector>

#include "cloud.hpp"
#include "hubferry/phase/default_definition.hpp"

namespace hubferry::phase::test {

/// Moves instances of one account from one virtual private cloud to another, keeping their addresses.
struct MoveToVpc {
  struct Spec {
    std::string account;
    std::string secret_id;
    std::string source_vpc;
    std::string target_vpc;
    std::vector<std::string> instances;  // empty: all of the source
    bool manually_confirm = false;
  } spec;
  struct Status {
    Phase phase;
    States state;
    std::vector<std::string> instances;           // what is being moved
    std::map<std::string, std::string> progress;  // instance -> the last step that it has taken
    std::map<std::string, std::string> unbound;   // instance -> public address to bind again
    bool confirmed = false;
  } status;
};

struct MoveToVpcServices {
  Cloud& cloud;
  std::map<Key, MoveToVpc>& resources;
};

using MoveToVpcDefinition = DefaultDefinition<MoveToVpcServices, MoveToVpc>;

/// Initializing -> PreFlight -> InFlight -> Succeeded, normalized.
MoveToVpcDefinition move_to_vpc_definition(Key key);

}  // namespace hubferry::phase::test
