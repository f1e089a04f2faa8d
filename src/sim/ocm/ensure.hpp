#pragma once

#include "hubferry/kube/edit.hpp"

namespace hubferry::sim {

/// Creates `wanted`, or brings its fields into the object that is there; other fields stay. Lists are replaced whole.
kube::Awaitable<kube::Result<kube::Written>> ensure(kube::Api& api, kube::Resource resource, kube::json::object wanted);

/// Creates it unless there is one of that name, which stays as it is.
kube::Awaitable<kube::Result<>> ensure_exists(kube::Api& api, kube::Resource resource, kube::json::object wanted);

/// Deletes; an object that is not there is a success.
kube::Awaitable<kube::Result<>> ensure_gone(kube::Api& api, kube::Resource resource, kube::Key key);

}  // namespace hubferry::sim
