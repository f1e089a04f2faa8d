#pragma once

#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"

namespace hubferry::app {

/// The migration of that name. `ns`: the namespace that was searched; empty: all. Throws std::runtime_error if there is
/// none, or more than one.
const kube::Object& select_migration(const std::vector<kube::Object>& migrations, const std::string& ns,
                                     const std::string& name);

/// For migrations that could not be listed. To a user who may read a single namespace it says that one can be named.
[[noreturn]] void throw_for_list(const kube::Error& error, const kube::Api& api, const std::string& ns);

/// Reads it from the global hub. Throws std::runtime_error.
async::Awaitable<kube::Object> find_migration(kube::Api& api, std::string ns, std::string name);

}  // namespace hubferry::app
