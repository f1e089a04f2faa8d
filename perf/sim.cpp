// What a simulated API server costs: through its direct API on virtual time, and through HTTP on loopback.
#include <boost/asio/connect.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/serialize.hpp>
#include <thread>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/sim/http_frontend.hpp"
#include "hubferry/sim/server.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "report.hpp"

namespace {

using namespace hubferry;
using async::Awaitable;
using async::TaskScope;
using perf::Report;
using perf::Stopwatch;
namespace asio = boost::asio;
namespace json = boost::json;
using asio::ip::tcp;

/// About 2 KB of JSON, with as many fields as such an object has in real clusters.
json::object sample(const std::string& name) {
  json::object labels, data;
  for (int i = 0; i < 8; ++i) labels["example.com/label-" + std::to_string(i)] = "value-" + std::to_string(i);
  for (int i = 0; i < 20; ++i)
    data["key-" + std::to_string(i)] =
        "some text of a length that is common in configuration, number " + std::to_string(i);
  return {{"metadata", json::object{{"name", name}, {"namespace", "default"}, {"labels", std::move(labels)}}},
          {"data", std::move(data)}};
}

struct World {
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  sim::Server server;
  World() : server(options(), kube::Env{loop.clock(), random, metrics, obs::Logger{}}) {}
  static sim::Options options() {
    sim::Options options;
    options.record_requests = false;
    options.history = 1'000;
    return options;
  }
};

const kube::Resource& kind = kube::resources::config_maps;

void direct(Report& report) {
  constexpr int count = 20'000;
  World world;
  auto& api = world.server.api();
  const double before = perf::allocated_bytes();
  auto create = [&]() -> Awaitable<> {
    for (int i = 0; i < count; ++i) {
      auto made = co_await api.create(kind, sample("c" + std::to_string(i)));
      if (!made) throw std::runtime_error(made.error().describe());
    }
  };
  auto update = [&]() -> Awaitable<> {
    for (int i = 0; i < count; ++i) {
      json::object patch{{"data", json::object{{"key-1", std::to_string(i)}}}};
      auto made = co_await api.merge_patch(kind, {"default", "c" + std::to_string(i)}, patch);
      if (!made) throw std::runtime_error(made.error().describe());
    }
  };
  auto read = [&]() -> Awaitable<> {
    for (int i = 0; i < count; ++i) {
      auto found = co_await api.get(kind, {"default", "c" + std::to_string(i)});
      if (!found) throw std::runtime_error(found.error().describe());
    }
  };
  auto list = [&]() -> Awaitable<> {
    auto all = co_await api.list_all(kind, {});
    if (!all || all->size() != count) throw std::runtime_error("the list is not complete");
  };
  Stopwatch creating;
  world.loop.run(create());
  report.line("direct creates of 2 KB objects", count / creating.cpu(), "/s", "30,000");
  world.server.compact();
  report.line("memory per stored 2 KB object", (perf::allocated_bytes() - before) / count, "bytes", "under 4,096");
  report.line("the object as JSON text", static_cast<double>(json::serialize(sample("c0")).size()), "bytes");
  Stopwatch patching;
  world.loop.run(update());
  report.line("direct merge patches", count / patching.cpu(), "/s", "30,000");
  Stopwatch reading;
  world.loop.run(read());
  report.line("direct gets", count / reading.cpu(), "/s");
  Stopwatch listing;
  world.loop.run(list());
  report.line("objects listed, 500 a page", count / listing.cpu(), "/s");
}

void fan_out(Report& report) {
  constexpr int watchers = 1'000;
  constexpr int writes = 200;
  World world;
  auto& api = world.server.api();
  auto watch = [&](std::size_t& seen) -> Awaitable<> {
    kube::WatchOptions options;
    options.resource_version = std::to_string(world.server.resource_version());
    options.bookmarks = false;
    auto stream = co_await api.watch(kind, options, kube::object_decoder());
    for (int events = 0; events < writes;) {
      auto batch = co_await (*stream)->next();
      if (!batch || batch->empty()) throw std::runtime_error("the watch ended");
      events += static_cast<int>(batch->size());
      seen += batch->size();
    }
  };
  std::size_t seen = 0;
  auto body = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < watchers; ++i) scope.spawn(watch(seen));
    co_await world.loop.clock().sleep_for(std::chrono::seconds{1});
    for (int i = 0; i < writes; ++i) {
      auto made = co_await api.create(kind, sample("c" + std::to_string(i)));
      if (!made) throw std::runtime_error(made.error().describe());
    }
    co_await scope.join();
  };
  Stopwatch watching;
  world.loop.run(body());
  report.line("watch events delivered, 1 writer, 1,000 watchers", static_cast<double>(seen) / watching.cpu(), "/s");
}

/// Sends `request` `count` times over one connection, one after the other.
void hammer(std::uint16_t port, const std::string& request, int count) {
  asio::io_context context;
  tcp::socket socket{context};
  socket.connect({asio::ip::address_v4::loopback(), port});
  socket.set_option(tcp::no_delay(true));
  std::string buffer;
  for (int i = 0; i < count; ++i) {
    asio::write(socket, asio::buffer(request));
    const auto head = asio::read_until(socket, asio::dynamic_buffer(buffer), "\r\n\r\n");
    const auto at = buffer.find("Content-Length: ");
    const auto length = std::stoul(buffer.substr(at + 16));
    if (buffer.size() < head + length)
      asio::read(socket, asio::dynamic_buffer(buffer), asio::transfer_exactly(head + length - buffer.size()));
    if (!buffer.starts_with("HTTP/1.1 200")) throw std::runtime_error(buffer.substr(0, 200));
    buffer.erase(0, head + length);
  }
}

void over_http(Report& report) {
  constexpr int clients = 4;
  constexpr int requests = 10'000;
  async::RealClock clock;
  async::Random random{1};
  obs::Metrics metrics;
  asio::io_context context{1};
  sim::Server server{World::options(), kube::Env{clock, random, metrics, obs::Logger{}}};
  sim::HttpOptions options;
  options.tls = false;
  options.anonymous = sim::admin();
  sim::HttpFrontend frontend{server, context.get_executor(), options};
  TaskScope scope{context.get_executor()};
  scope.spawn(frontend.serve());
  bool made = false;
  auto prepare = [&]() -> Awaitable<> {
    auto created = co_await server.api().create(kind, sample("c"));
    made = created.has_value();
  };
  asio::co_spawn(context, prepare(), [](const std::exception_ptr&) {});
  while (!made) context.run_one();
  double server_cpu = 0;
  std::thread thread{[&] {
    timespec before{}, after{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    context.run();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    server_cpu =
        static_cast<double>(after.tv_sec - before.tv_sec) + static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  }};
  const std::string get = "GET /api/v1/namespaces/default/configmaps/c HTTP/1.1\r\nHost: sim\r\n\r\n";
  std::vector<std::thread> load;
  Stopwatch serving;
  for (int i = 0; i < clients; ++i) load.emplace_back([&] { hammer(frontend.port(), get, requests); });
  for (auto& client : load) client.join();
  const double elapsed = serving.seconds();
  asio::post(context, [&] {
    scope.stop();
    asio::co_spawn(context, scope.join(), [](const std::exception_ptr&) {});
  });
  thread.join();
  report.line("HTTP gets of a 2 KB object, 4 connections", clients * requests / elapsed, "/s", "10,000");
  report.line("HTTP gets per second of the server's CPU", clients * requests / server_cpu, "/s", "10,000");
}

/// A world as `hubferry sim --clusters` makes it, until its hubs have nothing left to do.
void start_up(Report& report) {
  constexpr std::size_t clusters = 10'000;
  sim::WorldOptions options;
  options.clusters = clusters;
  options.agents = false;
  options.server.record_requests = false;
  const double before = perf::allocated_bytes();
  Stopwatch starting;
  sim::VirtualWorld world{options};
  report.line("start-up with 10,000 clusters", starting.cpu(), "s", "under 10");
  const auto& hub = world.server("hub1");
  report.line("writes for that", static_cast<double>(hub.resource_version()), "");
  report.line("memory of it, per cluster", (perf::allocated_bytes() - before) / clusters, "bytes");
}

/// An hour of a fleet's heartbeats and status reports, by real agents.
void heartbeats(Report& report) {
  sim::WorldOptions options;
  options.clusters = 100;
  options.server.record_requests = false;
  sim::VirtualWorld world{options};
  world.run_for(std::chrono::minutes{5});
  Stopwatch living;
  world.run_for(std::chrono::hours{1});
  report.line("one virtual hour of 100 agents", living.cpu(), "s", "under 1");
}

}  // namespace

int main(int argc, char** argv) {
  Report report{"the simulated API server", argc, argv};
  direct(report);
  fan_out(report);
  over_http(report);
  start_up(report);
  heartbeats(report);
}
