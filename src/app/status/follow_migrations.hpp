#pragma once

#include "app/cli/server_client.hpp"
#include "app/status/status_watch.hpp"

namespace hubferry::app {

/// Shows migrations on standard output as they change; see StatusWatch::run(), whose exit code it returns. Throws
/// OutputClosed.
async::Awaitable<int> follow_migrations(ServerClient& client, StatusWatchOptions options, std::ostream& out,
                                        async::Event& stop);

}  // namespace hubferry::app
