#include "app/cli/server_client.hpp"

#include <unistd.h>

#include <stdexcept>

#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

kube::HttpApiOptions interactive_options(const kube::ClientConfig& config) {
  kube::HttpApiOptions options;
  options.name = config.server;
  options.user_agent = "hubferry/" + std::string{obs::build_info().version};
  options.connect_timeout = std::chrono::seconds{5};
  options.request_timeout = std::chrono::seconds{15};
  options.max_retries = 1;
  return options;
}

void let_plugin_ask(kube::ClientConfig& config) {
  if (!config.exec) return;
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  config.exec->person = terminal ? kube::ExecPlugin::Person::has_terminal : kube::ExecPlugin::Person::waits;
}

}  // namespace

ServerClient::ServerClient(kube::ClientConfig config) {
  let_plugin_ask(config);
  const auto options = interactive_options(config);
  api_ = kube::make_http_api(std::move(config), options, loop_, env());
}

std::shared_ptr<kube::Api> ServerClient::connect(std::string name, kube::ClientConfig config) {
  let_plugin_ask(config);
  auto options = interactive_options(config);
  options.name = std::move(name);
  return kube::make_http_api(std::move(config), options, loop_, env());
}

void throw_for(const kube::Error& error, const kube::Api& api) {
  const std::string server{api.name()};
  switch (error.kind) {
    case kube::ErrorKind::unreachable:
      throw std::runtime_error("cannot reach API server " + server + ": " + error.message);
    case kube::ErrorKind::unauthorized:
      // Without a status it was not the server: there is no credential, and the message says why.
      if (error.status == 0) throw std::runtime_error("no credentials for API server " + server + ": " + error.message);
      throw std::runtime_error("API server " + server + " rejected the credentials: check the kubeconfig");
    case kube::ErrorKind::not_found:
    case kube::ErrorKind::unsupported:
      throw std::runtime_error("API server " + server +
                               " does not serve ManagedClusterMigrations: install the CRD with "
                               "`kubectl apply -k manifests/crds`, or select another server with --kubeconfig");
    default:
      throw std::runtime_error("API server " + server + ": " + error.describe());
  }
}

async::Awaitable<int> unless_stopped(async::Event& stop, async::Awaitable<> task) {
  bool finished = false;
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    auto work = [](async::Awaitable<> inner, bool& done, async::TaskScope& all) -> async::Awaitable<> {
      co_await std::move(inner);
      done = true;
      all.stop();
    };
    scope.spawn(work(std::move(task), finished, scope));
    co_await stop.wait();
    scope.stop();
  };
  co_await async::with_scope(body);
  co_return finished ? 0 : 130;
}

int run_interruptibly(const std::function<async::Awaitable<int>()>& command) {
  const auto body = [&](async::Event& stop) -> async::Awaitable<int> {
    int code = 0;
    auto work = [&]() -> async::Awaitable<> { code = co_await command(); };
    const int interrupted = co_await unless_stopped(stop, work());
    co_return interrupted != 0 ? interrupted : code;
  };
  return async::run_main(body, {});
}

}  // namespace hubferry::app
