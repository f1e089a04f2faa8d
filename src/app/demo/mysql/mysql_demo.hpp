#pragma once

#include <iosfwd>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::app {

/// Throws std::runtime_error that names what is missing, and how to install it.
void require_mysql_programs();

/// Runs three real MariaDB servers under the MySQL operator, kills the primary under a client that writes all the time,
/// and prints each step. Returns the exit code: 0 if another server was promoted and no acknowledged write is missing,
/// 1 otherwise, 130 if stopped.
/// Executor: the caller's loop. Everything runs on addresses of loopback, and ends with the call.
async::Awaitable<int> run_mysql_demo(async::Event& stop, kube::Env env, std::ostream& out);

}  // namespace hubferry::app
