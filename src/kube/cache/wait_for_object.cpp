#include "hubferry/kube/wait_for_object.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"

namespace hubferry::kube {

Awaitable<bool> wait_for_object(Api& api, Resource resource, Key key, ObjectPredicate predicate, TimePoint deadline,
                                Env env) {
  CacheOptions only_this;
  only_this.ns = key.ns;
  only_this.field_selector = "metadata.name=" + key.name;
  Cache<Object> cache{api, std::move(resource), std::move(only_this), object_decoder(), env};
  auto follow = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(cache.run());
    co_await cache.wait_for(key, predicate, async::never);
    scope.stop();
  };
  co_return co_await async::before_deadline(env.clock, deadline, async::with_scope(follow));
}

}  // namespace hubferry::kube
