// What it costs to follow a large, busy collection: a server process of our own lists ManagedClusters as they look on
// a real hub, then sends MODIFIED events as fast as they are read. Server time is not counted: only this process is.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "hubferry/async/loops.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/kube/splitter.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "report.hpp"

namespace hubferry {
namespace {

using async::Awaitable;
using perf::Report;
using perf::Stopwatch;

constexpr std::size_t clusters = 10'000;
constexpr std::size_t events = 200'000;
constexpr std::size_t version_digits = 9;

std::string padded(std::size_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return std::string(width > text.size() ? width - text.size() : 0, '0') + text;
}

/// Versions have a fixed width and no leading zero, so that they can be patched into rendered bytes.
std::string version_text(std::size_t number) {
  return std::to_string(100'000'000 + number);
}

std::string condition(std::string_view type, std::string_view status, std::string_view reason,
                      std::string_view message) {
  return R"({"lastTransitionTime":"2029-12-31T23:59:59Z","message":")" + std::string{message} + R"(","reason":")" +
         std::string{reason} + R"(","status":")" + std::string{status} + R"(","type":")" + std::string{type} + R"("})";
}

std::string managed_fields(std::string_view manager, std::string_view fields) {
  return R"({"apiVersion":"cluster.open-cluster-management.io/v1","fieldsType":"FieldsV1","fieldsV1":)" +
         std::string{fields} + R"(,"manager":")" + std::string{manager} +
         R"(","operation":"Update","time":"2029-12-31T23:59:59Z"})";
}

/// About 3 KB.
std::string render_cluster(std::size_t number, std::string_view version) {
  const std::string name = "edge-cluster-" + padded(number, 5);
  const std::string id = padded(number * 7919, 12);
  std::string text =
      R"({"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"annotations":{)"
      R"("import.open-cluster-management.io/disable-auto-import":"","open-cluster-management/created-via":"other"},)"
      R"("creationTimestamp":"2029-06-01T12:00:00Z","finalizers":["managedcluster-import-controller.)"
      R"(open-cluster-management.io/cleanup","cluster.open-cluster-management.io/api-resource-cleanup"],)"
      R"("generation":3,"labels":{"cloud":"Amazon","cluster.open-cluster-management.io/clusterset":"default",)"
      R"("clusterID":"5f0c1d2e-0000-4000-8000-)" +
      id +
      R"(","feature.open-cluster-management.io/addon-cert-policy-controller":"available",)"
      R"("feature.open-cluster-management.io/addon-work-manager":"available",)"
      R"("feature.open-cluster-management.io/addon-cluster-proxy":"available","name":")" +
      name + R"(","openshiftVersion":"4.18.3","region":"eu-central-1","vendor":"OpenShift"},"managedFields":[)" +
      managed_fields("registration-operator",
                     R"({"f:metadata":{"f:finalizers":{".":{},"v:\"cluster.open-cluster-management.io/)"
                     R"(api-resource-cleanup\"":{}}},"f:spec":{".":{},"f:hubAcceptsClient":{},)"
                     R"("f:leaseDurationSeconds":{}}})") +
      "," +
      managed_fields("registration",
                     R"({"f:status":{"f:allocatable":{".":{},"f:cpu":{},"f:memory":{}},"f:capacity":{".":{},)"
                     R"("f:cpu":{},"f:memory":{}},"f:clusterClaims":{},"f:conditions":{},"f:version":{".":{},)"
                     R"("f:kubernetes":{}}}})") +
      R"(],"name":")" + name + R"(","resourceVersion":")" + std::string{version} +
      R"(","uid":"9a8b7c6d-0000-4000-8000-)" + id +
      R"("},"spec":{"hubAcceptsClient":true,"leaseDurationSeconds":60,"managedClusterClientConfigs":[{"url":"https://api.)" +
      name +
      R"(.example.com:6443"}]},"status":{"allocatable":{"cpu":"48","memory":"196608Mi"},)"
      R"("capacity":{"cpu":"48","memory":"196608Mi"},"clusterClaims":[{"name":"id.k8s.io","value":")" +
      id + R"("},{"name":"platform.open-cluster-management.io","value":"AWS"}],"conditions":[)";
  text +=
      condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin") + ",";
  text += condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined") + ",";
  text +=
      condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", "Managed cluster is available") +
      ",";
  text += condition("ManagedClusterConditionClockSynced", "True", "ManagedClusterClockSynced",
                    "The clock of the managed cluster is synced with the hub.") +
          ",";
  text += condition("ManagedClusterImportSucceeded", "True", "ManagedClusterImported", "Import succeeded");
  return text + R"(],"version":{"kubernetes":"v1.31.6"}}})";
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) std::exit(0);  // the client has gone: done
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string parameter(std::string_view request, std::string_view name) {
  const auto target = request.substr(0, request.find("\r\n"));
  auto at = target.find(std::string{name} + "=");
  if (at == std::string_view::npos) return {};
  at += name.size() + 1;
  return std::string{target.substr(at, target.find_first_of("& ", at) - at)};
}

/// The least that a client needs: paged lists and one watch, rendered beforehand.
class Server {
 public:
  Server() {
    for (std::size_t i = 0; i < clusters; ++i) {
      items_.push_back(render_cluster(i, version_text(i)));
      lines_.push_back(R"({"type":"MODIFIED","object":)" + items_.back() + "}\n");
      marks_.push_back(lines_.back().find(R"("resourceVersion":")") + std::strlen(R"("resourceVersion":")"));
    }
  }

  void serve(int connection) {
    std::string request;
    char buffer[4096];
    while (true) {
      const auto got = ::recv(connection, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      request.append(buffer, static_cast<std::size_t>(got));
      if (request.find("\r\n\r\n") == std::string::npos) continue;
      if (!parameter(request, "watch").empty())
        watch(connection);
      else
        list(connection, request);
      request.clear();
    }
    ::close(connection);
  }

 private:
  void list(int connection, std::string_view request) {
    const std::string limit_text = parameter(request, "limit");
    const std::string token = parameter(request, "continue");
    const std::size_t begin = token.empty() ? 0 : std::stoul(token);
    const std::size_t limit = limit_text.empty() ? clusters : std::stoul(limit_text);
    const std::size_t end = std::min(clusters, begin + limit);
    std::string body = R"({"kind":"ManagedClusterList","metadata":{"resourceVersion":")" + version_text(clusters) +
                       R"(","continue":")" + (end < clusters ? std::to_string(end) : "") + R"("},"items":[)";
    for (std::size_t i = begin; i < end; ++i) body += (i > begin ? "," : "") + items_[i];
    body += "]}";
    send_all(connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  void watch(int connection) {
    send_all(connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    constexpr std::size_t batch = 32;  // lines that a busy server writes together
    std::string body;
    for (std::size_t sent = 0; sent < events;) {
      body.clear();
      for (std::size_t i = 0; i < batch && sent < events; ++i, ++sent) {
        // A stride that meets every cluster in no obvious order.
        const std::size_t which = sent * 4241 % clusters;
        const std::size_t begin = body.size();
        body += lines_[which];
        std::memcpy(body.data() + begin + marks_[which], version_text(clusters + 1 + sent).data(), version_digits);
      }
      char head[32];
      std::snprintf(head, sizeof head, "%zx\r\n", body.size());
      send_all(connection, head + body + "\r\n");
    }
    // Open and silent from here on, as a watch is.
    char byte = 0;
    while (::recv(connection, &byte, 1, 0) > 0) {
    }
    std::exit(0);
  }

  std::vector<std::string> items_;
  std::vector<std::string> lines_;
  std::vector<std::size_t> marks_;  // where each line has its resourceVersion
};

/// A listening socket on loopback, and its port.
std::pair<int, std::uint16_t> listen_on_loopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener, 16) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("cannot listen on loopback");
  return {listener, ntohs(address.sin_port)};
}

/// A child that serves until we are done: each connection in a process of its own, so that list and watch may overlap.
pid_t start_server(int listener) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGCHLD, SIG_IGN);
  Server server;
  while (true) {
    const int connection = ::accept(listener, nullptr, nullptr);
    if (connection < 0) std::_Exit(1);
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(listener);
      server.serve(connection);
      std::_Exit(0);
    }
    ::close(connection);
  }
}

/// Cutting, decoding and applying alone, without a network: where the time goes.
void measure_parts(Report& report) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    lines.push_back(R"({"type":"MODIFIED","object":)" + render_cluster(i, version_text(i)) + "}");
    bytes += lines.back().size();
  }
  report.line("size of an event", static_cast<double>(bytes) / 1000, "B");
  constexpr int rounds = 100;
  std::size_t kept = 0;
  const Stopwatch cutting;
  for (int round = 0; round < rounds; ++round)
    for (const auto& line : lines) kept += kube::split_watch_event(line)->object.size();
  report.line("cutting, per 100,000 events", cutting.cpu(), "CPU-s");
  const Stopwatch decoding;
  for (int round = 0; round < rounds; ++round)
    for (const auto& line : lines)
      kept += ocm::managed_cluster_decoder().from_bytes(kube::split_watch_event(line)->object)->key.name.size();
  report.line("cutting and decoding, per 100,000 events", decoding.cpu(), "CPU-s");
  if (kept == 0) std::abort();
}

struct Client {
  Report& report;
  kube::ClientConfig config;

  Awaitable<int> run(async::Event&) {
    async::RealClock clock;
    async::Random random{1};
    obs::Metrics metrics;
    kube::Env env{clock, random, metrics, {}};
    // As in production: connection and JSON on the server's loop, the cache on the control loop.
    async::LoopPool loops{1};
    kube::HttpApiOptions options;
    options.name = "perf";
    const auto api = kube::make_http_api(config, options, loops.next(), env);

    kube::CacheOptions cache_options;
    cache_options.watch.stream_initial = false;
    kube::Cache<ocm::ManagedCluster> cache{*api, ocm::managed_clusters, cache_options, ocm::managed_cluster_decoder(),
                                           env};
    async::Event finished;
    std::size_t seen = 0;
    const auto subscription = cache.subscribe([&](const kube::Key&, const auto& old, const auto&) {
      if (old && ++seen == events) finished.set();
    });
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      const double allocated = perf::allocated_bytes();
      const double resident = perf::resident_bytes();
      const Stopwatch listing;
      scope.spawn(cache.run());
      co_await cache.wait_synced();
      report.line("first list", listing.seconds(), "s");
      report.line("first list, CPU", listing.cpu(), "CPU-s");
      const Stopwatch watching;
      co_await finished.wait();
      const double seconds = watching.seconds();
      const double cpu = watching.cpu();
      report.line("events per second", static_cast<double>(events) / seconds, "/s");
      report.line("per 100,000 events", cpu * 100'000 / static_cast<double>(events), "CPU-s",
                  "under 2 (client-go: 21)");
      const auto objects = static_cast<double>(cache.size());
      report.line("allocated per cached object", (perf::allocated_bytes() - allocated) / objects, "B",
                  "under 1536 (client-go: 6656)");
      report.line("resident per cached object", (perf::resident_bytes() - resident) / objects, "B");
      report.line("resident in all", perf::resident_bytes() / 1048576, "MiB", "(client-go: 100)");
      scope.stop();
    };
    co_await async::with_scope(body);
    co_return 0;
  }
};

int run(int argc, char** argv) {
  const auto [listener, port] = listen_on_loopback();
  const pid_t server = start_server(listener);
  ::close(listener);

  Report report{"informer: 10,000 ManagedClusters, 200,000 events", argc, argv};
  measure_parts(report);
  kube::ClientConfig config;
  config.server = "http://127.0.0.1:" + std::to_string(port);
  Client client{report, config};
  auto body = [&client](async::Event& stop) { return client.run(stop); };
  const int code = async::run_main(body, {});
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return code;
}

}  // namespace
}  // namespace hubferry

int main(int argc, char** argv) {
  try {
    return hubferry::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perf_informer: %s\n", error.what());
    return 1;
  }
}
