// What the page costs a manager: a migration of 5,000 clusters of which 60 arrive each second, with one viewer. The
// viewer is a thread of this process that only reads; its share is in the figures.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <thread>

#include "app/status/migration_json.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/ui/console.hpp"
#include "report.hpp"

namespace {

using namespace hubferry;
using namespace std::chrono_literals;
namespace json = boost::json;

constexpr int clusters = 5000;
constexpr int arrivals_per_second = 60;
constexpr int seconds = 20;

std::string name_of(int number) {
  return "cluster-" + std::to_string(10000 + number);
}

kube::Object migration_with(int arrived) {
  json::array names;
  for (int number = 0; number < clusters; ++number) names.emplace_back(name_of(number));
  json::object counts{{"total", clusters}, {"migrated", arrived}, {"migrating", clusters - arrived}};
  return kube::Object{{{"metadata", json::object{{"name", "move"}, {"namespace", "default"}, {"uid", "1"}}},
                       {"spec", json::object{{"from", "hub1"}, {"to", "hub2"}, {"includedManagedClusters", names}}},
                       {"status", json::object{{"phase", "Registering"}, {"clusters", std::move(counts)}}}}};
}

/// Reads the stream until it ends; returns how many bytes there were.
std::size_t view(std::uint16_t port) {
  async::asio::io_context context;
  async::asio::ip::tcp::socket socket{context};
  socket.connect({async::asio::ip::address_v4::loopback(), port});
  const std::string request = "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
  async::asio::write(socket, async::asio::buffer(request));
  std::vector<char> part(64UL * 1024);
  std::size_t bytes = 0;
  async::error_code error;
  while (!error) bytes += socket.read_some(async::asio::buffer(part), error);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  perf::Report report{"The page: 5,000 clusters, 60 arrivals a second, one viewer", argc, argv};
  async::RealClock clock;
  obs::Metrics metrics;
  obs::add_process_metrics(metrics);
  async::LoopPool loops{1};
  const auto loop = loops.next();
  ui::ConsoleOptions options;
  options.address = "127.0.0.1:0";
  options.describe = app::migration_json;
  ui::Console console{loop, clock, metrics, std::move(options)};
  console.listen();
  async::asio::cancellation_signal cancel;
  std::promise<void> ended;
  async::asio::co_spawn(
      loop, console.run(),
      async::asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr) { ended.set_value(); }));
  console.put(std::make_shared<const kube::Object>(migration_with(0)));
  auto viewer = std::async(std::launch::async, view, console.port());

  const perf::Stopwatch watch;
  for (int arrived = 0; arrived < arrivals_per_second * seconds; ++arrived) {
    console.arrive({"default", "move"}, name_of(arrived));
    // As the controller writes it: every three seconds.
    if (arrived % (3 * arrivals_per_second) == 0)
      console.put(std::make_shared<const kube::Object>(migration_with(arrived)));
    std::this_thread::sleep_for(1s / static_cast<double>(arrivals_per_second));
  }
  report.line("CPU of one core", 100 * watch.cpu() / watch.seconds(), "%", "under 10 %");
  report.line("resident memory", perf::resident_bytes() / 1e6, "MB");
  async::asio::post(loop, [&] { cancel.emit(async::asio::cancellation_type::terminal); });
  ended.get_future().wait();
  report.line("sent to the viewer", static_cast<double>(viewer.get()) / seconds / 1e3, "kB/s");
}
