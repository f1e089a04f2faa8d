#include "hubferry/mysql/operator_lease.hpp"

#include "hubferry/async/backoff.hpp"

namespace hubferry::mysql {

namespace {

/// False, with a warning: this account has no right to the Lease. Manifests that are older than it do not grant it.
async::Awaitable<bool> may_use_lease(kube::Api& api, kube::Key lease, kube::Env env) {
  async::Backoff backoff{{}, env.clock, env.random};
  for (;;) {
    const auto found = co_await api.get(kube::resources::leases, lease);
    if (found || found.error().kind == kube::ErrorKind::not_found) co_return true;
    if (found.error().kind == kube::ErrorKind::forbidden) {
      env.log.warn("Lease cannot be used: another MySQL operator would not be noticed",
                   {{"lease", lease.ns + "/" + lease.name}, {"error", found.error().describe()}});
      co_return false;
    }
    co_await backoff.pause();
  }
}

}  // namespace

async::Awaitable<> run_as_only_operator(kube::Api& api, kube::LeaderElectionOptions election,
                                        obs::CheckState* readiness, kube::Env env,
                                        std::function<async::Awaitable<>(kube::Fence*)> work) {
  election.name = operator_lease;
  const kube::Key lease{election.ns, election.name};
  const bool is_usable = co_await may_use_lease(api, lease, env);
  if (!is_usable) {
    co_await work(nullptr);
    co_return;
  }
  // Other controllers of this process have nothing to do with this Lease: they continue when it is lost.
  election.return_to_standby = true;
  election.on_leader_change = [readiness, log = env.log, lease,
                               identity = election.identity](const std::string& leader) {
    if (leader.empty() || leader == identity) return;
    if (readiness != nullptr) readiness->fail("another MySQL operator, " + leader + ", has the Lease " + lease.name);
    log.warn("another MySQL operator has the Lease, waiting",
             {{"leader", leader}, {"lease", lease.ns + "/" + lease.name}});
  };
  kube::LeaderElector elector{api, std::move(election), env};
  auto lead = [&](kube::LeaderEpoch) -> async::Awaitable<> {
    if (readiness != nullptr) readiness->pass();
    return work(&elector);
  };
  co_await elector.run(lead);
}

}  // namespace hubferry::mysql
