#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "app/cli/common_flags.hpp"
#include "app/cli/files.hpp"
#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/commands/commands.hpp"
#include "app/status/migration_json.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/obs/bind_address.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/sim/world.hpp"
#include "hubferry/ui/console.hpp"
#include "hubferry/ui/feed.hpp"

namespace hubferry::app {

namespace {

/// Options of `hubferry sim`.
struct SimOptions {
  std::vector<std::string> hubs{"hub1", "hub2"};
  bool hubs_given = false;
  int clusters = 0;
  std::string fleet = "mixed";
  int secrets = 0;
  bool agents = true;
  std::string agent_profile = "upstream";
  bool managed_service_accounts = true;
  std::string acm = "2.17";
  std::string kubeconfig_dir;
  obs::BindAddress listen{.host = "127.0.0.1", .port = 0};
  bool insecure_http = false;
  std::uint64_t seed = 1;
  std::string faults;                 // a file
  std::vector<std::string> attached;  // kubeconfig files
  std::string output = "text";
  UiFlags ui{.address = "127.0.0.1:0"};
  LogFlags log;

  /// Lifetime: this object outlives the command.
  void add_to(Command& command);
  /// Validates combinations of flags. Throws UsageError.
  void check() const;

  /// True if there are simulated servers, not only attached ones.
  [[nodiscard]] bool simulates() const { return attached.empty() || hubs_given; }
};

/// "hub1" for "/etc/hubs/hub1.kubeconfig". Throws std::invalid_argument if that is not a valid name.
std::string hub_name_of(const std::string& file);

constexpr const char* global_name = "global";

Flag hubs_flag(SimOptions& options) {
  const auto apply = [&options](const std::string& text) {
    options.hubs = parse_list(text);
    options.hubs_given = true;
    for (const auto& name : options.hubs) {
      parse_namespace(name);
      if (name == global_name) throw std::invalid_argument("'global' is the global hub, which always exists");
    }
  };
  return {.name = "hubs",
          .placeholder = "LIST",
          .help = "Comma-separated names of the hubs, without the global hub.",
          .default_text = "hub1,hub2",
          .apply = apply,
          .short_name = ""};
}

Flag listen_flag(obs::BindAddress& target) {
  const auto apply = [&target](const std::string& text) {
    const auto read = obs::parse_bind_address(text);
    if (!read) throw std::invalid_argument("'" + text + "' is not an address: use 127.0.0.1:0");
    target = *read;
    if (target.host == "localhost") target.host = "127.0.0.1";
    if (target.host.empty()) target.host = "0.0.0.0";
  };
  return {.name = "listen",
          .placeholder = "ADDRESS:PORT",
          .help = "Address of the global hub; the hubs use the ports that follow. Port 0: any free ports.",
          .default_text = "127.0.0.1:0",
          .apply = apply,
          .short_name = ""};
}

Flag seed_flag(std::uint64_t& target) {
  const auto apply = [&target](const std::string& text) {
    target = static_cast<std::uint64_t>(parse_integer(text, 0, std::numeric_limits<std::int64_t>::max()));
  };
  return {.name = "seed",
          .placeholder = "N",
          .help = "Random seed. The same seed gives the same names, clusters and faults.",
          .default_text = "1",
          .apply = apply,
          .short_name = ""};
}

Flag attach_flag(std::vector<std::string>& target) {
  const auto apply = [&target](const std::string& text) {
    const auto name = hub_name_of(text);
    for (const auto& other : target)
      if (hub_name_of(other) == name) throw std::invalid_argument("'" + name + "' is attached twice");
    target.push_back(text);
  };
  return {.name = "attach",
          .placeholder = "FILE",
          .help =
              "Kubeconfig of a real API server to use as a hub. The hub's name is the file's name up to the first dot; "
              "the one called global becomes the global hub. Repeatable. Simulated servers are then only started if "
              "--hubs is given.",
          .default_text = "",
          .apply = apply,
          .short_name = "",
          .repeatable = true};
}

std::string hub_name_of(const std::string& file) {
  const auto name = std::filesystem::path(file).filename().string();
  return parse_namespace(name.substr(0, name.find('.')));
}

void SimOptions::add_to(Command& command) {
  command.add(hubs_flag(*this));
  command.add_integer(clusters, "clusters", 0, 100'000, "Number of managed clusters on the first hub.");
  command.add_choice(
      fleet, "fleet", "", "KIND", {"mixed", "small", "telco"},
      "What a cluster consists of: small (nothing beside its ManagedCluster and add-ons), telco (installed "
      "by Hive on three machines, 12 Secrets), or mixed, as years of use leave it.");
  command.add_integer(secrets, "secrets", 0, 1'000, "Number of further Secrets of each cluster that move with it.");
  command.add_switch(agents, "agents",
                     "Run an agent for each cluster, which keeps it Available and follows migrations.");
  command.add_choice(
      agent_profile, "agent-profile", "", "PROFILE", {"upstream", "hubferry"},
      "How the agents behave: as those of Open Cluster Management, which register on a hub until they "
      "succeed or are restarted, or as 'hubferry klusterlet', which leaves a hub that does not take it.");
  command.add_switch(managed_service_accounts, "managed-service-accounts",
                     "Serve ManagedServiceAccounts on the global hub.");
  command.add_choice(acm, "acm", "", "VERSION", {"2.17", "5.x", "none"},
                     "Import controller of the hubs, by the version of the multicluster engine: 2.17, 5.x or none.");
  command.add_text(kubeconfig_dir, "kubeconfig-dir", "DIRECTORY",
                   "Directory for the admin kubeconfigs global.kubeconfig, hub1.kubeconfig and so on.");
  command.add(listen_flag(listen));
  command.add_switch(insecure_http, "insecure-http",
                     "Serve plain HTTP without authentication: everybody is admin. For local load tests.");
  command.add(seed_flag(seed));
  command.add_text(faults, "faults", "FILE", "Faults to inject: a list of rules in YAML or JSON, as described above.");
  command.add(attach_flag(attached));
  add_output_flag(command, output, {"text", "json"}, "Output format: text or json.");
  ui.add_address_to(command);
  log.add_to(command);
}

void SimOptions::check() const {
  if (simulates() && kubeconfig_dir.empty() && !insecure_http)
    throw UsageError("--kubeconfig-dir is required: without it there are no credentials to connect with");
  if (simulates() && hubs.empty() && clusters > 0) throw UsageError("--clusters needs a hub: add one with --hubs");
  // Each hub uses the port after its predecessor's, which must not wrap around.
  constexpr std::size_t last_port = std::numeric_limits<std::uint16_t>::max();
  if (simulates() && listen.port != 0 && listen.port + hubs.size() > last_port)
    throw UsageError("--listen: " + std::to_string(hubs.size()) + " hubs need the ports after " +
                     std::to_string(listen.port) + ", and the last port is " + std::to_string(last_port));
  if (!simulates() && !faults.empty()) throw UsageError("--faults needs simulated servers: add some with --hubs");
  if (!attached.empty() && hubs_given)
    for (const auto& file : attached)
      if (const auto name = hub_name_of(file); name == global_name || std::ranges::find(hubs, name) != hubs.end())
        throw UsageError("--attach " + file + " and a simulated server have the same name " + name);
}

namespace json = boost::json;

/// A server, as printed for the user.
struct ServerInfo {
  std::string name;
  std::string url;
  std::string kubeconfig;  // empty: not written
  bool simulated = true;
  std::size_t clusters = 0;
};

sim::ImportController import_controller(const SimOptions& options) {
  if (options.acm == "none") return sim::ImportController::none;
  return options.acm == "5.x" ? sim::ImportController::mce_5_x : sim::ImportController::mce_2_17;
}

sim::FleetKind fleet_kind(const SimOptions& options) {
  if (options.fleet == "small") return sim::FleetKind::small;
  return options.fleet == "telco" ? sim::FleetKind::telco : sim::FleetKind::mixed;
}

sim::WorldOptions world_options(const SimOptions& options) {
  sim::WorldOptions world;
  world.hubs = options.hubs;
  world.clusters = options.attached.empty() ? static_cast<std::size_t>(options.clusters) : 0;
  world.fleet = fleet_kind(options);
  world.secrets = static_cast<std::size_t>(options.secrets);
  world.seed = options.seed;
  world.agents = options.agents;
  world.upstream_agents = options.agent_profile == "upstream";
  world.managed_service_accounts = options.managed_service_accounts;
  world.import_controller = import_controller(options);
  world.server.record_requests = false;  // it would grow without a limit
  sim::HttpOptions http;
  http.address = options.listen.host;
  http.port = options.listen.port;
  http.tls = !options.insecure_http;
  world.http = http;
  if (!options.faults.empty()) {
    world.faults = sim::FaultScript::parse(read_file(options.faults), options.faults);
    for (const auto& name : world.faults.servers())
      if (name != sim::global_hub && std::ranges::find(options.hubs, name) == options.hubs.end())
        throw std::runtime_error(options.faults + " names an unknown server: " + name);
  }
  return world;
}

/// Real API servers that the simulated OCM controllers turn into hubs.
class Attached {
 public:
  Attached(const SimOptions& options, const async::Executor& loop, kube::Env env) {
    std::vector<sim::HubSite> sites;
    for (const auto& file : options.attached) {
      auto config = kube::load_kubeconfig(file);
      kube::HttpApiOptions client;
      client.name = hub_name_of(file);
      client.user_agent = "hubferry/" + std::string{obs::build_info().version};
      apis_.push_back(kube::make_http_api(config, client, loop, env));
      sites.push_back({client.name, apis_.back().get(), config});
      servers_.push_back({client.name, config.server, file, false, 0});
    }
    sim::HubSetOptions hubs;
    hubs.clusters = static_cast<std::size_t>(options.clusters);
    hubs.fleet = fleet_kind(options);
    hubs.secrets = static_cast<std::size_t>(options.secrets);
    hubs.seed = options.seed;
    hubs.managed_service_accounts = options.managed_service_accounts;
    hubs.import_controller = import_controller(options);
    hubs_ = std::make_unique<sim::HubSet>(std::move(sites), hubs, std::move(env));
    for (auto& one : servers_)
      if (one.name == hubs_->first_hub()) one.clusters = hubs.clusters;
  }

  sim::HubSet& hubs() { return *hubs_; }
  [[nodiscard]] const std::vector<ServerInfo>& servers() const { return servers_; }

 private:
  std::vector<std::unique_ptr<kube::Api>> apis_;
  std::vector<ServerInfo> servers_;
  std::unique_ptr<sim::HubSet> hubs_;
};

std::vector<ServerInfo> describe(sim::World& world, const SimOptions& options) {
  std::vector<ServerInfo> all;
  const auto first = world.hubs().first_hub();
  for (const auto& name : world.servers()) {
    const auto& config = world.admin_config(name);
    ServerInfo info{name, config.server, {}, true, name == first ? world.clusters().size() : 0};
    if (!options.kubeconfig_dir.empty()) {
      const auto path = std::filesystem::path(options.kubeconfig_dir) / (name + ".kubeconfig");
      write_private_file(path, kube::to_kubeconfig(config));
      info.kubeconfig = path.string();
    }
    all.push_back(std::move(info));
  }
  return all;
}

/// The page, fed by the simulated global hub: it shows migrations as a manager that does not lead would.
class SimPage {
 public:
  SimPage(const SimOptions& options, const async::Executor& loop, kube::Api& global, const kube::Env& env)
      : console_(loop, env.clock, env.metrics, console_options(options, env)), feed_(global, console_, {}, env) {
    console_.listen();
  }

  /// Empty: it is off.
  [[nodiscard]] std::string url() const { return console_.enabled() ? console_.url() : std::string{}; }

  async::Awaitable<> run() {
    if (!console_.enabled()) co_return;
    auto both = [this](async::TaskScope& scope) -> async::Awaitable<> {
      scope.spawn(feed_.run());
      co_await console_.run();
    };
    co_await async::with_scope(both);
  }

 private:
  static ui::ConsoleOptions console_options(const SimOptions& options, const kube::Env& env) {
    ui::ConsoleOptions console;
    console.address = options.ui.address;
    console.log = env.log.named("ui");
    console.describe = migration_json;
    console.version = obs::build_info().version;
    return console;
  }

  ui::Console console_;
  ui::Feed feed_;
};

void print_table(std::ostream& out, const std::vector<ServerInfo>& servers, const std::string& page) {
  TextTable table{{"NAME", "SERVER", "URL", "CLUSTERS", "KUBECONFIG"}};
  for (const auto& one : servers)
    table.add(
        {one.name, one.simulated ? "simulated" : "attached", one.url, std::to_string(one.clusters), one.kubeconfig});
  // Not truncated to the terminal: the path is there to be copied.
  for (const auto& line : table.lines(Terminal{})) out << line << "\n";
  if (!page.empty()) out << "\nMigrations in a browser: " << page << "\n";
}

void print_json(std::ostream& out, const std::vector<ServerInfo>& servers, const SimOptions& options, double seconds,
                const std::string& page) {
  json::array list;
  for (const auto& one : servers) {
    json::object shown{{"name", one.name}, {"simulated", one.simulated}, {"url", one.url}, {"clusters", one.clusters}};
    if (!one.kubeconfig.empty()) shown["kubeconfig"] = one.kubeconfig;
    list.push_back(std::move(shown));
  }
  json::object all{{"seed", options.seed}, {"readyAfterSeconds", seconds}, {"servers", std::move(list)}};
  if (!page.empty()) all["ui"] = page;
  out << to_json_line(all);
}

/// Builds the servers, prints them, and runs them until `stop` is set.
async::Awaitable<int> simulate(const SimOptions& options, kube::Env env, std::ostream& out, async::Event& stop) {
  const auto loop = co_await async::asio::this_coro::executor;
  const auto begun = env.clock.now();
  std::optional<sim::World> world;
  std::optional<Attached> attached;
  std::optional<SimPage> page;
  if (options.simulates()) world.emplace(world_options(options), loop, env);
  if (!options.attached.empty()) attached.emplace(options, loop, env);
  auto run = [&](async::TaskScope& scope) -> async::Awaitable<> {
    if (world) {
      co_await world->build();
      scope.spawn(world->run());
      co_await world->wait_settled();
    }
    if (attached) {
      co_await attached->hubs().build();
      scope.spawn(attached->hubs().run());
      co_await attached->hubs().wait_settled();
    }
    if (world) {
      page.emplace(options, loop, world->api(sim::global_hub), env);
      scope.spawn(page->run());
    }
    const auto url = page ? page->url() : std::string{};
    std::vector<ServerInfo> servers;
    if (world) servers = describe(*world, options);
    if (attached) servers.insert(servers.end(), attached->servers().begin(), attached->servers().end());
    const double seconds = std::chrono::duration<double>(env.clock.now() - begun).count();
    if (options.output == "json")
      print_json(out, servers, options, seconds, url);
    else
      print_table(out, servers, url);
    flush(out);
    env.log.info("ready", {{"servers", servers.size()}, {"clusters", options.clusters}, {"seconds", seconds}});
    co_await stop.wait();
    env.log.info("stopping");
    scope.stop();
  };
  auto watch_for_stop = [&](async::TaskScope& scope) -> async::Awaitable<> {
    // Building thousands of clusters takes seconds: a stop must not wait for it.
    scope.spawn(async::with_scope(run));
    co_await stop.wait();
    scope.stop();
  };
  co_await async::with_scope(watch_for_stop);
  env.log.info("stopped");
  co_return 0;
}

int run_sim(const SimOptions& options, std::ostream& out) {
  async::RealClock clock;
  obs::LogSink sink{options.log.sink_options()};
  const auto log = sink.logger().named("sim");
  if (!options.kubeconfig_dir.empty()) std::filesystem::create_directories(options.kubeconfig_dir);
  obs::Metrics metrics;
  async::Random random{options.seed};
  const kube::Env env{clock, random, metrics, log};
  const auto body = [&](async::Event& stop) { return simulate(options, env, out, stop); };
  async::ShutdownPolicy policy;
  policy.say = [&](const std::string& message) { log.debug(message); };
  return async::run_main(body, policy);
}

}  // namespace

void add_sim_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("sim", "serve simulated hubs with thousands of clusters");
  command.describe(
      "Starts a global hub and the hubs registered on it. Each is an in-memory API server with all CRDs, the behaviour "
      "of Open Cluster Management's controllers, and a kubeconfig; kubectl and `hubferry manager` work with them. "
      "Prints "
      "the servers and runs until SIGTERM, SIGINT or SIGHUP. All data is lost then.\n\n"
      "Protobuf bodies are supported for the kinds most often created by `kubectl create` without a file (ConfigMaps, "
      "Secrets, "
      "namespaces, service accounts, roles); for others use `kubectl create -f` or `apply`.\n\n"
      "A faults file is a list of rules such as {server: hub1, verb: update, resource: leases, times: 2, fail: 409}. "
      "Match: server, verb (get, list, watch, create, update, patch, apply, delete, read, write), resource, "
      "subresource, namespace, name; an absent field matches all. Frequency: times N (default 1), rate P, or always: "
      "true; after N skips the first N matches. One effect per rule: fail: STATUS (with retryAfter: SECONDS), delay: "
      "TIME, reset: before|after, stale: VERSIONS, watch: drop|cut, delayEvent: TIME, compact: true. A TIME is 100ms, "
      "{uniform: [10ms, 200ms]} or {exponential: [MINIMUM, MEAN]}. Faults begin when the hubs have processed their "
      "first "
      "clusters.");
  const auto options = std::make_shared<SimOptions>();
  options->log.format = obs::LogFormat::text;
  options->add_to(command);
  command.example("hubferry sim --clusters 100 --kubeconfig-dir /tmp/sim", "two hubs, a hundred clusters on hub1");
  command.example("KUBECONFIG=/tmp/sim/hub1.kubeconfig kubectl get managedclusters", "list them");
  command.example("hubferry sim --attach global.kubeconfig --attach hub1.kubeconfig --attach hub2.kubeconfig",
                  "the same on real API servers");
  command.on_check([options] { options->check(); });
  command.on_run([options, &out] { return run_sim(*options, out); });
}

}  // namespace hubferry::app
