#pragma once

#include "migration/ledger.hpp"

/// What a rollback has to do, and how it went. Functions of their arguments only.
namespace hubferry::migration {

/// These clusters by how far each had come. Empty where nothing was touched.
std::map<hubagent::Stage, ClusterNames> plan_rollback(const Migration& migration, const Ledger& ledger,
                                                      const ClusterNames& clusters);

/// Clusters that did not arrive and have no failure of their own failed with their stage.
void fail_all_others(const Migration& migration, Ledger& ledger);

struct RollbackVerdict {
  bool success = false;
  std::string reason;
  std::string message;  // where it failed: also what a person can do now
};
RollbackVerdict judge_rollback(const Migration& migration, const Ledger& ledger, const json::object& problems);

}  // namespace hubferry::migration
