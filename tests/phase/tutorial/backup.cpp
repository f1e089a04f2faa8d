#include "backup.hpp"

using namespace hubferry;
using namespace std::chrono_literals;
using phase::Awaitable, phase::Ending, phase::ReconcileState, phase::State;
using BackupContext = phase::Context<BackupServices>;
using Handler = phase::Handler<BackupServices, Backup>;

Awaitable<ReconcileState> has_volumes(BackupContext&, Backup& backup, const State&) {
  const auto* volumes = backup.object.find({"spec", "volumes"});
  co_return volumes != nullptr && volumes->is_array() ? phase::done() : phase::failed("spec.volumes is missing");
}

Awaitable<ReconcileState> is_approved(BackupContext&, Backup& backup, const State&) {
  co_return backup.object.annotation("example.com/approved") == "yes" ? phase::done() : phase::not_done(10s);
}

Awaitable<ReconcileState> copy(BackupContext& context, Backup& backup, const State&) {
  boost::json::array snapshots;
  for (const auto& volume : backup.object.find({"spec", "volumes"})->as_array()) {
    auto snapshot = co_await context->take_snapshot(std::string{volume.as_string()});
    context.log().info("snapshot taken", {{"snapshot", snapshot}});
    snapshots.emplace_back(snapshot);
  }
  backup.status["snapshots"] = std::move(snapshots);
  backup.set_condition("Saved", kube::ConditionStatus::yes, "Copied", "all volumes are saved",
                       context.clock().wall_now());
  co_return phase::done();
}

void define(phase::DefaultDefinition<BackupServices, Backup>& definition) {
  definition.initial = "Checking";
  definition.terminals = {{"Saved", Ending::success}, {"Failed", Ending::failure}};
  definition.normal = {{"Checking", "Copying"}, {"Copying", "Saved"}};
  definition.error = {{"Checking", "Failed"}, {"Copying", "Failed"}};
  definition.handlers.emplace("Checking", Handler::parallel({.description = "may it start?"},
                                                            {Handler::leaf({.name = "volumes"}, has_volumes),
                                                             Handler::leaf({.name = "approval"}, is_approved)}));
  definition.handlers.emplace("Copying", Handler::leaf({.description = "take the snapshots", .timeout = 1h}, copy));
}
