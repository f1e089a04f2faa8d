#pragma once

#include "hubferry/hubs/hubs.hpp"
#include "migration/ledger.hpp"

/// The rules of Validating that need nobody else. Functions of their arguments only.
namespace hubferry::migration {

struct Problem {
  std::string reason;
  std::string message;
};

/// All that is wrong with what the resource asks for.
std::vector<Problem> request_problems(const Migration& migration);

/// Why this cannot be one of the two hubs.
std::optional<Problem> hub_problem(const hubs::HubInfo& hub);

/// The sentences, one after the other.
std::string joined(const std::vector<Problem>& problems);

/// What both hubs have to say about each cluster.
std::map<std::string, Failure> problems_of_clusters(std::map<std::string, Failure> on_source,
                                                    const std::map<std::string, Failure>& on_target);
inline std::map<std::string, Failure> no_failures() {
  return {};
}

}  // namespace hubferry::migration
