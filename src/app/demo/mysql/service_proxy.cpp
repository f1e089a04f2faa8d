#include "app/demo/mysql/service_proxy.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "app/demo/mysql/tcp_forward.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/mysql/resource.hpp"

namespace hubferry::app {

namespace {

namespace asio = async::asio;
using asio::ip::tcp;

constexpr auto no_error = asio::as_tuple(asio::use_awaitable);

}  // namespace

struct ServiceProxy::State {
  State(kube::Api& api, kube::Key key, const async::Executor& executor, const kube::Env& given)
      : service(std::move(key)),
        env(given),
        slices(api, mysql::kinds::endpoint_slices, {}, kube::object_decoder(), env),
        acceptor(executor, tcp::endpoint{asio::ip::address_v4::loopback(), 0}) {}

  /// The first endpoint; a default one if there is none.
  [[nodiscard]] tcp::endpoint target() const {
    const auto slice = slices.get(service);
    const auto* endpoints = slice == nullptr ? nullptr : slice->find({"endpoints"});
    const auto* ports = slice == nullptr ? nullptr : slice->find({"ports"});
    if (endpoints == nullptr || !endpoints->is_array() || endpoints->get_array().empty()) return {};
    if (ports == nullptr || !ports->is_array() || ports->get_array().empty()) return {};
    const auto& address = endpoints->get_array().front().at("addresses").at(0).as_string();
    const auto port = ports->get_array().front().at("port").to_number<std::uint16_t>();
    return {asio::ip::make_address(std::string_view{address}), port};
  }

  async::Awaitable<> serve(tcp::socket client) {
    const auto endpoint = target();
    if (endpoint.port() == 0) co_return;
    co_await forward(std::move(client), endpoint, env.clock, network);
  }

  kube::Key service;
  kube::Env env;
  kube::Cache<kube::Object> slices;
  tcp::acceptor acceptor;
  std::shared_ptr<Network> network = std::make_shared<Network>();  // never cut
};

ServiceProxy::ServiceProxy(kube::Api& api, kube::Key service, async::Executor executor, const kube::Env& env)
    : state_(std::make_unique<State>(api, std::move(service), executor, env)) {}

ServiceProxy::~ServiceProxy() = default;

std::uint16_t ServiceProxy::port() const {
  return state_->acceptor.local_endpoint().port();
}

async::Awaitable<> ServiceProxy::run() {
  auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(state_->slices.run());
    for (;;) {
      auto [failed, client] = co_await state_->acceptor.async_accept(no_error);
      if (!failed) scope.spawn(state_->serve(std::move(client)));
    }
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::app
