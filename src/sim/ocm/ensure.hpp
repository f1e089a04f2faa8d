#pragma once

#include "hubferry/kube/edit.hpp"

namespace hubferry::sim {

/// Creates `wanted`, or merges its fields into the existing object; other fields stay. Lists are replaced as a whole.
kube::Awaitable<kube::Result<kube::Written>> ensure(kube::Api& api, kube::Resource resource, kube::json::object wanted);

/// Creates it; an existing object of that name is not changed.
kube::Awaitable<kube::Result<>> ensure_exists(kube::Api& api, kube::Resource resource, kube::json::object wanted);

/// Deletes; succeeds if there is no such object.
kube::Awaitable<kube::Result<>> ensure_gone(kube::Api& api, kube::Resource resource, kube::Key key);

}  // namespace hubferry::sim
