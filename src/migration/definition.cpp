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

}  // namespace

void declare(Definition& definition) {
  definition.initial = phases::pending;
  definition.terminals = {{phases::completed, phase::Ending::success}, {phases::failed, phase::Ending::failure}};
  definition.normal = {{phases::pending, phases::validating},     {phases::validating, phases::initializing},
                       {phases::initializing, phases::deploying}, {phases::deploying, phases::registering},
                       {phases::registering, phases::cleaning},   {phases::cleaning, phases::completed},
                       {phases::rollbacking, phases::failed}};
  definition.error = {{phases::pending, phases::failed},           {phases::validating, phases::failed},
                      {phases::initializing, phases::rollbacking}, {phases::deploying, phases::rollbacking},
                      {phases::registering, phases::rollbacking},  {phases::rollbacking, phases::failed},
                      {phases::cleaning, phases::completed}};
  definition.forced = {{phases::validating, phases::pending, "a cluster belongs to another migration"},
                       {phases::initializing, phases::rollbacking, "deleted"},
                       {phases::deploying, phases::rollbacking, "deleted"},
                       {phases::registering, phases::rollbacking, "deleted"},
                       {phases::rollbacking, phases::cleaning, "some clusters arrived"},
                       {phases::cleaning, phases::failed, "some clusters did not arrive"}};
  definition.resumptions = {
      resumption(phases::failed, phases::rollbacking, "rollback requested, or deleted before it was complete"),
      resumption(phases::completed, phases::cleaning, "deleted before the cleanup was complete")};
  definition.handlers.emplace(phases::pending, pending_phase());
  definition.handlers.emplace(phases::validating, validating_phase());
  definition.handlers.emplace(phases::initializing, initializing_phase());
  definition.handlers.emplace(phases::deploying, deploying_phase());
  definition.handlers.emplace(phases::registering, registering_phase());
  definition.handlers.emplace(phases::rollbacking, rollbacking_phase());
  definition.handlers.emplace(phases::cleaning, cleaning_phase());
}

void define(Definition& definition, phase::KubeStore& store) {
  phase::keep_in(definition, store);
  declare(definition);
  definition.normalize();
}

}  // namespace hubferry::migration
