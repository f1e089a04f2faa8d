#include "hubagent/helpers.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::hubagent {

Awaitable<Result<>> await_gone(Hub& hub, Resource resource, Key key) {
  auto found = co_await read_if_there(hub, resource, key);
  if (!found) co_return found.error();
  if (!*found) co_return Result<>{};

  auto permit = co_await hub.small_watches().acquire();
  kube::CacheOptions options;
  options.ns = key.ns;
  options.field_selector = "metadata.name=" + key.name;
  kube::Cache<Object> watched{hub.api(), resource, options, kube::object_decoder(), hub.env()};
  auto is_gone = [](const Object* object) { return object == nullptr; };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(watched.run());
    co_await watched.wait_for(key, is_gone, async::never);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
