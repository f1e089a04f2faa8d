#pragma once

#include <optional>

#include "hubferry/kube/api.hpp"

namespace hubferry::klusterlet {

/// Renews the cluster's Lease on its hub. Agents may get and update it, not patch it, so a renewal is a read and a
/// conditional write; but only the agent writes it as a rule, so the answer to the last write saves the read.
/// Thousands of agents do this every minute.
class LeaseRenewal {
 public:
  /// Writes `renew_time`. Errors: those of the read or the write; a conflict with another writer, or a Lease that was
  /// created anew, is read and tried once more.
  async::Awaitable<kube::Result<>> renew(kube::Api& api, kube::Key key, std::string renew_time);

 private:
  std::optional<kube::json::object> known_;  // as the hub has it, by its answer to our last write
};

}  // namespace hubferry::klusterlet
