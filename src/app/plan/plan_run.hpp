#pragma once

#include <iosfwd>
#include <map>

#include "app/cli/server_client.hpp"
#include "app/plan/plan.hpp"
#include "hubferry/hubs/hub_directory.hpp"

namespace hubferry::app {

/// Opens the connections to the hubs and keeps them, to find out which kinds a hub serves.
class HubConnections {
 public:
  HubConnections(async::Executor loop, kube::Env env) : loop_(std::move(loop)), env_(std::move(env)) {}

  hubs::Connect opener();
  async::Awaitable<kube::Result<bool>> serves(std::string hub, kube::Resource resource);

 private:
  async::Executor loop_;
  kube::Env env_;
  std::map<std::string, std::shared_ptr<kube::Api>> apis_;
};

/// The only object of the file that the user named; "-" is standard input. Throws std::runtime_error.
kube::json::object read_only_object(const std::string& file);
/// What errors call it.
std::string shown_name(const std::string& file);

/// Lists once what the hub directory watches: a cache would retry for ever, while the user waits for an error. Throws
/// std::runtime_error.
async::Awaitable<> check_access(kube::Api& global);

struct PlanOutput {
  bool list_objects = false;
  std::string format = "table";  // or "json"
};

/// Makes the plan of a migration on the global hub of `client`, and prints it. Returns the exit code: 0 if the
/// migration can succeed, 1 if not. `carried`: null for the default resources. Throws std::runtime_error without
/// access.
async::Awaitable<int> show_plan(ServerClient& client, migration::MigrationSpec spec,
                                std::shared_ptr<const hubagent::CarriedResources> carried, PlanOutput output,
                                std::ostream& out);

}  // namespace hubferry::app
