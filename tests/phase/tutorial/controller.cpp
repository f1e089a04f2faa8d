#include "backup.hpp"
#include "hubferry/kube/leader_election.hpp"

using namespace hubferry;

async::Awaitable<> run_backup_controller(kube::Api& api, BackupServices& services, kube::Env env) {
  kube::LeaderElectionOptions lease;
  lease.name = "backup-controller";
  lease.ns = "default";
  lease.identity = env.random.uuid();
  kube::LeaderElector elector{api, lease, env};

  phase::Controller<BackupServices, Backup> controller{
      api, {"example.com", "v1", "backups", "Backup"}, services, env, {.name = "backup", .fence = &elector}};
  define(controller.definition);
  auto lead = [&](kube::LeaderEpoch) { return controller.run(); };
  co_await elector.run(lead);
}
