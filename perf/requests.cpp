// How many requests a client gets through on keep-alive connections, and what one costs it in processor time.
// The server is a process of its own that does as little as possible: parses nothing but lengths.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/http_api.hpp"
#include "support/certificates.hpp"
#include "support/real_loop.hpp"

namespace hubferry {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::ip::tcp;
using async::Awaitable;

/// An object of about 1 KiB.
json::object sample_object() {
  json::object labels;
  for (int i = 0; i < 10; ++i) labels["example.org/label-" + std::to_string(i)] = "value-" + std::to_string(i);
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", json::object{{"name", "sample"},
                                    {"namespace", "default"},
                                    {"uid", "0e5f3c4e-8d1b-4a5e-9d77-0b2f5c6f1a11"},
                                    {"resourceVersion", "123456"},
                                    {"labels", std::move(labels)}}},
          {"data", json::object{{"text", std::string(400, 'x')}}}};
}

namespace responder {

std::size_t content_length(std::string_view head) {
  const auto at = head.find("Content-Length: ");
  std::size_t length = 0;
  if (at != std::string_view::npos) std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
  return length;
}

template <typename Stream>
Awaitable<> answer_all(Stream stream, const std::string& answer) {
  if constexpr (!std::is_same_v<Stream, tcp::socket>)
    co_await stream.async_handshake(asio::ssl::stream_base::server, asio::deferred);
  std::string pending;
  char data[16 * 1024];
  while (true) {
    const auto size = co_await stream.async_read_some(asio::buffer(data), asio::deferred);
    pending.append(data, size);
    while (true) {
      const auto head_end = pending.find("\r\n\r\n");
      if (head_end == std::string::npos) break;
      const auto whole = head_end + 4 + content_length(std::string_view{pending}.substr(0, head_end + 2));
      if (pending.size() < whole) break;
      pending.erase(0, whole);
      co_await asio::async_write(stream, asio::buffer(answer), asio::deferred);
    }
  }
}

/// Clients that go away end their coroutine by an exception, which concerns nobody.
void ignore(const std::exception_ptr&) {}

Awaitable<> accept_all(tcp::acceptor& acceptor, asio::ssl::context* tls, const std::string& answer) {
  while (true) {
    tcp::socket socket = co_await acceptor.async_accept(asio::deferred);
    socket.set_option(tcp::no_delay{true});
    const auto executor = acceptor.get_executor();
    if (tls == nullptr) {
      asio::co_spawn(executor, answer_all(std::move(socket), answer), ignore);
    } else {
      asio::ssl::stream<tcp::socket> stream{std::move(socket), *tls};
      asio::co_spawn(executor, answer_all(std::move(stream), answer), ignore);
    }
  }
}

struct Ports {
  unsigned short plain = 0;
  unsigned short tls = 0;
};

[[noreturn]] void serve(int ports_fd, const test::Identity& identity) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string body = json::serialize(sample_object());
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  asio::io_context loop{1};
  asio::ssl::context tls{asio::ssl::context::tls_server};
  tls.use_certificate_chain(asio::buffer(identity.certificate_pem));
  tls.use_private_key(asio::buffer(identity.key_pem), asio::ssl::context::pem);
  const tcp::endpoint loopback{asio::ip::address_v4::loopback(), 0};
  tcp::acceptor plain_acceptor{loop, loopback};
  tcp::acceptor tls_acceptor{loop, loopback};
  const Ports ports{plain_acceptor.local_endpoint().port(), tls_acceptor.local_endpoint().port()};
  if (write(ports_fd, &ports, sizeof ports) != sizeof ports) _exit(1);
  asio::co_spawn(loop, accept_all(plain_acceptor, nullptr, answer), ignore);
  asio::co_spawn(loop, accept_all(tls_acceptor, &tls, answer), ignore);
  loop.run();
  _exit(0);
}

}  // namespace responder

std::chrono::nanoseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds{usage.ru_utime.tv_sec + usage.ru_stime.tv_sec} +
         std::chrono::microseconds{usage.ru_utime.tv_usec + usage.ru_stime.tv_usec};
}

enum class Operation { get, create, patch };
constexpr const char* operation_names[] = {"get", "create", "patch"};

Awaitable<kube::Result<kube::Object>> call(kube::Api& api, Operation operation, const json::object& object) {
  const kube::Key key{"default", "sample"};
  switch (operation) {
    case Operation::get:
      return api.get(kube::resources::config_maps, key);
    case Operation::create:
      return api.create(kube::resources::config_maps, object);
    default:
      return api.merge_patch(kube::resources::config_maps, key, object);
  }
}

struct Figures {
  std::string transport;
  std::string operation;
  int in_flight = 0;
  double per_second = 0;
  double processor_microseconds = 0;
};

/// Calls until the clock says stop.
Awaitable<> work(kube::Api& api, Operation operation, async::Clock& clock, async::TimePoint end, long& done) {
  json::object object = sample_object();
  if (operation == Operation::patch) object = {{"data", json::object{{"text", std::string(200, 'y')}}}};
  while (clock.now() < end) {
    auto result = co_await call(api, operation, object);
    if (!result) throw std::runtime_error(result.error().describe());
    ++done;
  }
}

Awaitable<> work_together(kube::Api& api, Operation operation, int workers, async::Clock& clock, async::Duration span,
                          long& done) {
  async::TaskScope scope{co_await asio::this_coro::executor};
  for (int i = 0; i < workers; ++i) scope.spawn(work(api, operation, clock, clock.now() + span, done));
  co_await scope.join();
}

Figures measure(const kube::ClientConfig& config, Operation operation, int in_flight, async::Duration span) {
  async::RealClock clock;
  async::Random random{1};
  obs::Metrics metrics;
  test::RealLoop loop;
  kube::HttpApiOptions options;
  options.max_connections = static_cast<std::size_t>(in_flight);
  const kube::Env env{clock, random, metrics, obs::Logger{}};
  auto api = kube::make_http_api(config, options, loop.executor(), env);
  long done = 0;
  // Connecting is not what is measured.
  loop.run(work_together(*api, operation, in_flight, clock, std::chrono::milliseconds{100}, done));
  done = 0;
  const auto start = clock.now();
  const auto used = processor_time();
  loop.run(work_together(*api, operation, in_flight, clock, span, done));
  const std::chrono::duration<double> took = clock.now() - start;
  const std::chrono::duration<double, std::micro> spent = processor_time() - used;
  return {config.ca_pem.empty() ? "plain" : "TLS", operation_names[static_cast<int>(operation)], in_flight,
          static_cast<double>(done) / took.count(), spent.count() / static_cast<double>(done)};
}

void write_json(const std::string& file, const std::vector<Figures>& all) {
  json::array rows;
  for (const auto& one : all)
    rows.push_back(json::object{{"transport", one.transport},
                                {"operation", one.operation},
                                {"in_flight", one.in_flight},
                                {"requests_per_second", one.per_second},
                                {"processor_microseconds_per_request", one.processor_microseconds}});
  std::ofstream out{file};
  out << json::serialize(json::object{{"benchmark", "requests"}, {"rows", std::move(rows)}}) << "\n";
  if (!out) throw std::runtime_error("cannot write " + file);
}

int run(const std::string& json_file, async::Duration span) {
  const test::Authority authority{"benchmark"};
  const auto identity = authority.issue({"IP:127.0.0.1"});
  int ports_pipe[2];
  if (pipe(ports_pipe) != 0) throw std::runtime_error("no pipe");
  const pid_t server = fork();
  if (server == 0) responder::serve(ports_pipe[1], identity);
  responder::Ports ports;
  if (read(ports_pipe[0], &ports, sizeof ports) != sizeof ports) throw std::runtime_error("the server did not start");

  kube::ClientConfig plain;
  plain.server = "http://127.0.0.1:" + std::to_string(ports.plain);
  kube::ClientConfig tls;
  tls.server = "https://127.0.0.1:" + std::to_string(ports.tls);
  tls.ca_pem = authority.certificate_pem();

  std::vector<Figures> all;
  std::printf("%-9s  %-9s  %9s  %12s  %14s\n", "transport", "operation", "in flight", "requests/s", "CPU us/request");
  for (const auto* config : {&plain, &tls})
    for (const auto operation : {Operation::get, Operation::create, Operation::patch})
      for (const int in_flight : {1, 16, 128}) {
        const auto& one = all.emplace_back(measure(*config, operation, in_flight, span));
        std::printf("%-9s  %-9s  %9d  %12.0f  %14.1f\n", one.transport.c_str(), one.operation.c_str(), one.in_flight,
                    one.per_second, one.processor_microseconds);
        std::fflush(stdout);
      }
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  if (!json_file.empty()) write_json(json_file, all);
  return 0;
}

}  // namespace
}  // namespace hubferry

int main(int argc, char** argv) {
  std::string json_file;
  double seconds = 1;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--json") == 0) {
      json_file = argv[++i];
    } else if (has_value && std::strcmp(argv[i], "--seconds") == 0) {
      seconds = std::atof(argv[++i]);
    } else {
      std::cerr << "perf_requests: unknown argument '" << argv[i]
                << "'\nusage: perf_requests [--json FILE] [--seconds S]\n";
      return 2;
    }
  }
  try {
    return hubferry::run(json_file, std::chrono::nanoseconds{static_cast<long>(seconds * 1e9)});
  } catch (const std::exception& error) {
    std::cerr << "perf_requests: " << error.what() << "\n";
    return 1;
  }
}
