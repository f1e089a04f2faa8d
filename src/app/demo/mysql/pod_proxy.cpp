#include "app/demo/mysql/pod_proxy.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "app/demo/mysql/tcp_forward.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::app {

namespace {

namespace asio = async::asio;
using asio::ip::tcp;

}  // namespace

struct PodProxy::State {
  struct Port {
    tcp::acceptor acceptor;
    tcp::endpoint server;
  };

  static async::Awaitable<> serve(std::shared_ptr<State> state, Port& port, async::TaskScope& scope) {
    while (!state->network->ended.is_set()) {
      auto [failed, client] = co_await port.acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (!failed) scope.spawn(forward(std::move(client), port.server, state->clock, state->network));
    }
  }
  static async::Awaitable<> run(std::shared_ptr<State> state) {
    auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
      for (auto& port : state->ports) scope.spawn(serve(state, port, scope));
      co_return;
    };
    co_await async::with_scope(body);
  }

  async::Clock& clock;
  std::shared_ptr<Network> network = std::make_shared<Network>();
  std::vector<Port> ports = {};
};

PodProxy::PodProxy(const async::Executor& executor, const std::string& address, const std::string& server,
                   const std::vector<std::uint16_t>& ports, async::Clock& clock)
    : state_(std::make_shared<State>(State{clock})) {
  for (const auto port : ports)
    state_->ports.push_back({tcp::acceptor{executor, tcp::endpoint{asio::ip::make_address(address), port}},
                             tcp::endpoint{asio::ip::make_address(server), port}});
}

PodProxy::~PodProxy() {
  state_->network->ended.set();
  boost::system::error_code ignored;
  for (auto& port : state_->ports) port.acceptor.close(ignored);
}

async::Awaitable<> PodProxy::run() const {
  return State::run(state_);
}

void PodProxy::cut() {
  state_->network->is_cut = true;
}

}  // namespace hubferry::app
