#include "app/status/follow_migrations.hpp"

#include <unistd.h>

#include "app/cli/output.hpp"

namespace hubferry::app {

async::Awaitable<int> follow_migrations(ServerClient& client, StatusWatchOptions options, std::ostream& out,
                                        async::Event& stop) {
  const auto terminal = [] { return Terminal::of(STDOUT_FILENO); };
  StatusWatch status{client.api(), std::move(options), client.env(), terminal, out};
  int code = 0;
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(watch_for_closed_output(client.env().clock, STDOUT_FILENO));
    code = co_await status.run(stop);
    scope.stop();
  };
  co_await async::with_scope(body);
  co_return code;
}

}  // namespace hubferry::app
