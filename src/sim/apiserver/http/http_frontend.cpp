#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/sim/http_frontend.hpp"
#include "sim/apiserver/core.hpp"
#include "sim/apiserver/http/server_connection.hpp"

namespace hubferry::sim {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::milliseconds accept_pause{100};

/// Throws with the address in the message: with several servers it must be clear which one failed.
tcp::acceptor open_acceptor(const async::Executor& executor, const HttpOptions& options) {
  try {
    return {executor, tcp::endpoint{asio::ip::make_address(options.address), options.port}, true};
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error("cannot listen on " + options.address + ":" + std::to_string(options.port) + ": " +
                             error.code().message());
  }
}

}  // namespace

class HttpFrontend::State {
 public:
  State(Server& server, async::Executor executor, HttpOptions options)
      : core_(server.core()),
        options_(std::move(options)),
        acceptor_(open_acceptor(executor, options_)),
        slots_(options_.most_connections),
        connection_context_{RequestHandler{core_, options_.anonymous}, options_.write_timeout, nullptr, 0} {
    if (options_.tls) load_certificates();
  }

  async::Awaitable<> serve() {
    // The acceptor belongs to its own loop; connections run on the loop of serve().
    auto body = [this](async::TaskScope& scope) -> async::Awaitable<> {
      while (true) {
        auto slot = co_await slots_.acquire();
        boost::system::error_code failed;
        auto socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, failed));
        if (!failed) {
          scope.spawn(serve_connection(connection_context_, std::move(socket), std::move(slot)));
          continue;
        }
        // Running out of descriptors, or a client that disconnects meanwhile, is no reason to stop listening.
        if (failed != asio::error::operation_aborted)
          core_->log().warn("accepting a connection failed", {{"error", failed.message()}});
        co_await core_->clock().sleep_for(accept_pause);
      }
    };
    co_await async::with_scope(body);
  }

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] std::size_t connections() const { return connection_context_.connections; }

  [[nodiscard]] std::string url() const {
    const bool needs_brackets = options_.address.find(':') != std::string::npos;
    const auto host = needs_brackets ? "[" + options_.address + "]" : options_.address;
    return (options_.tls ? "https://" : "http://") + host + ":" + std::to_string(port());
  }

  [[nodiscard]] kube::ClientConfig config_for(const User& user, bool by_certificate) const {
    auto config = describe_server(*core_, url());
    add_credential(config, *core_, user, by_certificate);
    return config;
  }

 private:
  void load_certificates() {
    auto& authority = core_->authority();
    std::vector<std::string> names{"DNS:localhost", "IP:127.0.0.1", "IP:::1"};
    if (options_.address != "127.0.0.1" && options_.address != "::1") names.push_back("IP:" + options_.address);
    const auto pair = authority.issue_server(names, core_->clock().wall_now());
    tls_.use_certificate_chain(asio::buffer(pair.certificate));
    tls_.use_private_key(asio::buffer(pair.key), asio::ssl::context::pem);
    tls_.add_certificate_authority(asio::buffer(authority.certificate_pem()));
    tls_.set_verify_mode(asio::ssl::verify_peer);  // a client certificate is optional, but must be valid
    // With client certificates, OpenSSL only resumes sessions with a session ID context, and fails other handshakes.
    constexpr std::string_view ours = "hubferry-sim";
    SSL_CTX_set_session_id_context(tls_.native_handle(), reinterpret_cast<const unsigned char*>(ours.data()),
                                   ours.size());
    connection_context_.tls = &tls_;
  }

  std::shared_ptr<Core> core_;
  HttpOptions options_;
  tcp::acceptor acceptor_;
  async::Semaphore slots_;
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  ConnectionContext connection_context_;
};

HttpFrontend::HttpFrontend(Server& server, async::Executor executor, HttpOptions options)
    : state_(std::make_unique<State>(server, std::move(executor), std::move(options))) {}

HttpFrontend::~HttpFrontend() = default;

async::Awaitable<> HttpFrontend::serve() {
  return state_->serve();
}

std::uint16_t HttpFrontend::port() const {
  return state_->port();
}

std::string HttpFrontend::url() const {
  return state_->url();
}

kube::ClientConfig HttpFrontend::config_for(const User& user, bool by_certificate) const {
  return state_->config_for(user, by_certificate);
}

std::size_t HttpFrontend::connections() const {
  return state_->connections();
}

std::string HttpFrontend::kubeconfig_for(const User& user, bool by_certificate) const {
  return kube::to_kubeconfig(config_for(user, by_certificate));
}

}  // namespace hubferry::sim
