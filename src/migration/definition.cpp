#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using Fetched = phase::Result<std::optional<Migration>>;

/// Reading an ended migration for which something is left to do gives one that is doing it.
auto heeding_requests(std::function<Awaitable<Fetched>(Services&, kube::Key)> fetch, async::Clock& clock) {
  return [fetch = std::move(fetch), &clock](Services& services, kube::Key key) -> Awaitable<Fetched> {
    auto fetched = co_await fetch(services, std::move(key));
    if (fetched && *fetched) begin_again(**fetched, clock.wall_now());
    co_return fetched;
  };
}

}  // namespace

void define(Definition& definition, phase::KubeStore& store, async::Clock& clock) {
  phase::keep_in(definition, store);
  definition.fetch_resource = heeding_requests(std::move(definition.fetch_resource), clock);
  definition.fetch_fresh = heeding_requests(std::move(definition.fetch_fresh), clock);

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
  definition.handlers.emplace(phases::pending, pending_phase());
  definition.handlers.emplace(phases::validating, validating_phase());
  definition.handlers.emplace(phases::initializing, initializing_phase());
  definition.handlers.emplace(phases::deploying, deploying_phase());
  definition.handlers.emplace(phases::registering, registering_phase());
  definition.handlers.emplace(phases::rollbacking, rollbacking_phase());
  definition.handlers.emplace(phases::cleaning, cleaning_phase());
  definition.normalize();
}

}  // namespace hubferry::migration
