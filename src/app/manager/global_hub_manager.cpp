#include "app/manager/global_hub_manager.hpp"

#include "hubferry/async/task_scope.hpp"

namespace hubferry::app {

namespace {

const kube::Resource global_hubs{"operator.open-cluster-management.io", "v1alpha4", "multiclusterglobalhubs",
                                 "MulticlusterGlobalHub", true};

constexpr auto wait_interval = std::chrono::seconds{10};
/// An operator is rarely installed; until it has started its manager, more time passes than that.
constexpr auto look_interval_while_working = std::chrono::minutes{1};

/// Returns when it has been installed.
async::Awaitable<> wait_for_global_hub_manager(kube::Api& global, kube::Env env) {
  for (;;) {
    co_await env.clock.sleep_for(look_interval_while_working);
    const auto found = co_await find_global_hub_manager(global);
    // Unknown is no reason to stop in the middle of a migration.
    if (found && *found) co_return;
  }
}

/// True if `work` has ended, false if it was stopped.
async::Awaitable<bool> run_until_installed(kube::Api& global, kube::Env env,
                                           const std::function<async::Awaitable<>()>& work) {
  bool ended = false;
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    auto work_on = [&]() -> async::Awaitable<> {
      co_await work();
      ended = true;
      scope.stop();
    };
    scope.spawn(work_on());
    co_await wait_for_global_hub_manager(global, env);
    scope.stop();
  };
  co_await async::with_scope(body);
  co_return ended;
}

}  // namespace

async::Awaitable<kube::Result<std::optional<std::string>>> find_global_hub_manager(kube::Api& global) {
  const auto served = co_await global.serves(global_hubs);
  if (!served) co_return served.error();
  if (!*served) co_return std::nullopt;
  const kube::ListOptions all;
  const auto found = co_await global.list_all(global_hubs, all);
  if (!found && found.error().kind == kube::ErrorKind::forbidden) {
    auto error = found.error();
    error.message = "this server has MulticlusterGlobalHubs, which the manager may not list: apply manifests/base";
    co_return error;
  }
  if (!found) co_return found.error();
  if (found->empty()) co_return std::nullopt;
  co_return "MulticlusterGlobalHub " + kube::to_string(found->front().key()) +
      " is installed, whose manager reconciles migrations: see docs/install.md, \"Beside multicluster-global-hub\"";
}

async::Awaitable<> while_no_global_hub_manager(kube::Api& global, kube::Env env, obs::CheckState& readiness,
                                               std::function<async::Awaitable<>()> work) {
  std::string said;
  for (;;) {
    const auto found = co_await find_global_hub_manager(global);
    if (found && !*found) {
      said.clear();
      const bool ended = co_await run_until_installed(global, env, work);
      if (ended) co_return;
      continue;
    }
    auto reason =
        found ? **found : "cannot find out whether multicluster-global-hub is installed: " + found.error().describe();
    readiness.fail(reason);
    if (said != reason) env.log.warn("migrations are not reconciled", {{"reason", reason}});
    said = std::move(reason);
    co_await env.clock.sleep_for(wait_interval);
  }
}

}  // namespace hubferry::app
