#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace hubferry::phase::test {

/// A cloud in memory, with as much of it as moving instances between networks needs.
struct Cloud {
  struct Instance {
    std::string vpc;
    std::string ip;
    bool running = true;
    std::vector<std::string> interfaces;  // attached network interfaces
    std::string public_ip;                // empty: none
  };
  struct Network {
    std::string account;
    std::string cidr;
    std::set<std::string> used_ips;
  };

  std::map<std::string, std::string> secrets;  // secret id -> account
  std::map<std::string, Network> networks;
  std::map<std::string, Instance> instances;
  std::map<std::string, std::string> clones;  // interface -> its clone in the target network

  /// Calls fail so many times before they succeed: a cloud is never quite well.
  int flaky_calls = 0;
  std::vector<std::string> calls;
};

}  // namespace hubferry::phase::test
