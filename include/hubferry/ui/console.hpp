#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/migration/cluster_record.hpp"
#include "hubferry/obs/logger.hpp"
#include "hubferry/obs/metrics.hpp"

namespace hubferry::ui {

/// A migration as the page shows it. `status` describes it in the same terms, so the layer above brings the function.
using Describe = std::function<boost::json::object(const kube::Object& migration, async::WallTime now)>;

struct ConsoleOptions {
  std::string address;  // see obs::parse_bind_address()
  obs::Logger log;
  Describe describe;
  std::string version;  // of the manager
  /// Reviews the tokens of clients; null: every client that reaches the address may read. Used on the console's loop
  /// only.
  std::shared_ptr<kube::Api> access_api;
  std::string watch_namespace;  // whose migrations are shown; empty: all
  std::size_t max_viewers = 32;
};

/// The page: shows migrations, their clusters and the hubs, live and read-only. What it shows is put in by a Feed.
///
/// Serves GET / (the page with its two assets), /api/state (a snapshot), /api/events (the snapshot and every change, as
/// server-sent events), /api/clusters?migration=NS/NAME and /api/cluster?migration=NS/NAME&name=CLUSTER. On a loopback
/// address requests for other host names are refused, so that no foreign site can read it by rebinding its name.
/// What it serves comes from the status and the ledger of migrations and from metrics: none of them holds secrets.
///
/// Executor: `loop`, a single one; the put…(), remove() and arrive() may be called from other loops.
/// Lifetime: clock and metrics outlive it.
class Console {
 public:
  /// Throws std::invalid_argument for a malformed address.
  Console(async::Executor loop, async::Clock& clock, obs::Metrics& metrics, ConsoleOptions options);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  [[nodiscard]] bool enabled() const;
  /// Opens the port; before run(). Throws std::runtime_error with a message that names the address.
  void listen();
  [[nodiscard]] std::uint16_t port() const;
  /// "http://127.0.0.1:8082/", for people; after listen().
  [[nodiscard]] std::string url() const;

  /// Serves until cancelled. From any loop.
  async::Awaitable<> run();

  /// What /api/state answers, and /api/clusters for one migration (empty: there is none). On the console's loop.
  [[nodiscard]] boost::json::object snapshot() const;
  [[nodiscard]] boost::json::object clusters(const std::string& migration) const;

  void put(std::shared_ptr<const kube::Object> migration);
  void remove(kube::Key migration);
  void put_clusters(kube::Key migration, std::string uid, std::vector<migration::ClusterRecord> records);
  void arrive(kube::Key migration, std::string cluster);
  /// The server of a hub's kubeconfig: by its host the metrics of requests become those of the hub.
  void put_hub_server(std::string hub, std::string server);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hubferry::ui
