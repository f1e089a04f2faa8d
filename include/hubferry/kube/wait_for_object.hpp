#pragma once

#include <functional>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

/// Called with the object's current state; null if it does not exist.
using ObjectPredicate = std::function<bool(const Object* object)>;

/// Lists and watches one object until `predicate` holds for it; false if the deadline came first. Of changes that come
/// together the predicate sees the last; it may keep what it needs of what it has seen.
/// Errors: list and watch are retried with backoff until the deadline, and logged. Cancellation: terminal.
/// Lifetime: api and what `env` refers to outlive the call.
Awaitable<bool> wait_for_object(Api& api, Resource resource, Key key, ObjectPredicate predicate, TimePoint deadline,
                                Env env);

}  // namespace hubferry::kube
