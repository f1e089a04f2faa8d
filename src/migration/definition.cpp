#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

phase::Resumption<Services, Migration> resumption(const Phase& from, const Phase& to, std::string when) {
  const auto prepare = [to](Services& services, Migration& migration, WallTime now) {
    prepare_to_resume(migration, to, now);
    services.reporter.remember(migration, to, now);
  };
  return {from, to, std::move(when), wants_to_resume, prepare};
}

/// None: the phase is terminal.
std::optional<Handler> handler_of(MigrationPhase phase) {
  switch (phase) {
    case MigrationPhase::pending:
      return pending_phase();
    case MigrationPhase::validating:
      return validating_phase();
    case MigrationPhase::initializing:
      return initializing_phase();
    case MigrationPhase::deploying:
      return deploying_phase();
    case MigrationPhase::registering:
      return registering_phase();
    case MigrationPhase::rollbacking:
      return rollbacking_phase();
    case MigrationPhase::cleaning:
      return cleaning_phase();
    case MigrationPhase::completed:
    case MigrationPhase::failed:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void declare(Definition& definition) {
  definition.initial = phases::pending;
  for (const auto& phase : phase_table) {
    if (phase.kind == PhaseKind::success) definition.terminals.emplace(phase.name, phase::Ending::success);
    if (phase.kind == PhaseKind::failure) definition.terminals.emplace(phase.name, phase::Ending::failure);
  }
  definition.normal = {{phases::pending, phases::validating},     {phases::validating, phases::initializing},
                       {phases::initializing, phases::deploying}, {phases::deploying, phases::registering},
                       {phases::registering, phases::cleaning},   {phases::cleaning, phases::completed},
                       {phases::rollbacking, phases::failed}};
  definition.error = {{phases::pending, phases::failed},           {phases::validating, phases::failed},
                      {phases::initializing, phases::rollbacking}, {phases::deploying, phases::rollbacking},
                      {phases::registering, phases::rollbacking},  {phases::rollbacking, phases::failed},
                      {phases::cleaning, phases::completed}};
  definition.forced = {
      {phases::validating, phases::pending, "a cluster belongs to another migration"},
      {phases::initializing, phases::rollbacking, "deleted"},
      {phases::deploying, phases::rollbacking, "deleted"},
      {phases::registering, phases::rollbacking, "deleted"},
      {phases::rollbacking, phases::cleaning, "some clusters arrived"},
      {phases::cleaning, phases::failed, "some clusters did not arrive"},
      {phases::cleaning, phases::rollbacking, "the target lost clusters, and a person wants them back"}};
  definition.resumptions = {
      resumption(phases::failed, phases::rollbacking, "rollback requested, or deleted before it was complete"),
      resumption(phases::completed, phases::cleaning,
                 "rollback requested, or deleted before the cleanup was complete")};
  for (const auto& phase : phase_table)
    if (auto handler = handler_of(phase.phase)) definition.handlers.emplace(phase.name, std::move(*handler));
}

const phase::DefinitionBase& phase_definition() {
  static const auto made = [] {
    auto definition = std::make_unique<Definition>();
    declare(*definition);
    definition->fetch_resource = [](Services&, kube::Key) -> Awaitable<phase::Result<std::optional<Migration>>> {
      co_return std::optional<Migration>{};
    };
    definition->persist_status = [](Services&, Migration&) -> Awaitable<phase::Written> {
      co_return phase::Written::gone();
    };
    definition->normalize();
    return definition;
  }();
  return *made;
}

}  // namespace hubferry::migration
