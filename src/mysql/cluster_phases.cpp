#include "mysql/cluster_phases.hpp"

#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

using ClusterHandler = phase::Handler<Services, Cluster>;

Awaitable<ReconcileState> reconcile(ClusterContext& context, Cluster& cluster, const phase::State&) {
  Pass pass{context, cluster};
  co_return co_await pass.run();
}

/// A person has asked for it, or has changed the spec since it failed.
bool wants_to_resume(const Cluster& cluster) {
  for (const auto* annotation : {names::reconcile_annotation, names::give_up_annotation})
    if (!cluster.object.annotation(annotation).empty()) return true;
  const auto* observed = cluster.status.if_contains("observedGeneration");
  return observed != nullptr && observed->is_int64() && observed->get_int64() != cluster.object.generation();
}

}  // namespace

/// Creating -> Running <-> Scaling
///    \          |  <-> Upgrading
///     `--> Failed (critical error) -> back, when a person has repaired it
/// A failover does not change the phase: it has a condition.
void declare(phase::DefaultDefinition<Services, Cluster>& definition) {
  definition.initial = phases::creating;
  definition.terminals = {{phases::failed, phase::Ending::failure}};
  definition.normal = {{phases::creating, phases::running},
                       {phases::running, phases::scaling},
                       {phases::scaling, phases::running},
                       {phases::upgrading, phases::running}};
  definition.error = {{phases::creating, phases::failed},
                      {phases::running, phases::failed},
                      {phases::scaling, phases::failed},
                      {phases::upgrading, phases::failed}};
  definition.forced = {{phases::running, phases::upgrading, "spec.mysqlVersion or spec.image changed"}};
  const auto has_primary = [](const Cluster& cluster) { return !cluster.primary().empty(); };
  definition.resumptions = {
      {phases::failed, phases::running, "repaired and annotated, or spec changed",
       [=](const Cluster& cluster) { return has_primary(cluster) && wants_to_resume(cluster); }},
      {phases::failed, phases::creating, "the same, and it never had a primary",
       [=](const Cluster& cluster) { return !has_primary(cluster) && wants_to_resume(cluster); }}};
  const auto add = [&](const char* phase, const char* description) {
    definition.handlers.emplace(phase, ClusterHandler::leaf({.description = description}, reconcile));
  };
  add(phases::creating, "create the objects, elect a primary, attach the replicas");
  add(phases::running, "keep the servers as the spec wants them, fail over");
  add(phases::scaling, "add or remove servers");
  add(phases::upgrading, "restart the servers with the new version, the primary last");
}

}  // namespace hubferry::mysql
