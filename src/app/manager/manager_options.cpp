#include "app/manager/manager_options.hpp"

#include <fstream>
#include <thread>

#include "app/cli/flag_values.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

constexpr const char* pod_namespace_file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
constexpr const char* fallback_namespace = "hubferry-system";

// Retries have up to 20 % jitter: at least one must fit before the deadline.
constexpr double retry_jitter = 1.2;

Flag controllers_flag(std::vector<std::string>& target) {
  std::string all;
  for (const auto& name : target) all += (all.empty() ? "" : ",") + name;
  const auto apply = [&target](const std::string& text) {
    auto names = parse_list(text);
    if (names.empty())
      throw std::invalid_argument("at least one controller is required: " + join_choices(controller_names()));
    for (const auto& name : names) parse_choice(name, controller_names());
    target = std::move(names);
  };
  return {.name = "controllers",
          .placeholder = "LIST",
          .help = "Comma-separated list of controllers to run: " + join_choices(controller_names()) + ".",
          .default_text = all,
          .apply = apply,
          .short_name = ""};
}

/// A switch that may have a value.
Flag print_phases_flag(std::string& target) {
  const std::vector<std::string> formats{"mermaid", "dot"};
  const auto apply = [&target, formats](const std::string& text) {
    if (text == "true" || text == "false") {
      target = text == "true" ? formats.front() : "";
    } else {
      parse_choice(text, formats);
      target = text;
    }
  };
  return {.name = "print-phases",
          .placeholder = "",
          .help =
              "Print the phases of the controllers with all their transitions, as mermaid or dot "
              "(--print-phases=dot), and exit.",
          .default_text = "",
          .apply = apply,
          .short_name = "",
          .from_environment = false};
}

}  // namespace

void ManagerOptions::add_to(Command& command) {
  add_kubeconfig_flag(command, kubeconfig);
  command.add(namespace_flag(own_namespace, "namespace", "the pod's namespace, or hubferry-system",
                             "Namespace of the Lease and the manager's own objects."));
  command.add(namespace_flag(watch_namespace, "watch-namespace", "all", "Reconcile only resources in this namespace."));
  command.add(namespace_flag(mysql_namespace, "mysql-namespace", "that of --watch-namespace",
                             "Reconcile MySQL clusters and backups only in this namespace."));
  command.add(controllers_flag(controllers));
  command.add(print_phases_flag(print_phases));
  command.add_integer(max_concurrent_migrations, "max-concurrent-migrations", 1, 100'000,
                      "Maximum number of migrations that run at once; the others wait in Pending.");
  command.add_integer(max_concurrent_relocations, "max-concurrent-relocations", 1, 10'000,
                      "Maximum number of ClusterDeployments that are moved to one destination at once.");
  command.add_integer(clusters_in_flight_per_hub, "clusters-in-flight-per-hub", 1, 100'000,
                      "Maximum number of clusters of one hub that are processed at once, across all migrations.");
  add_carried_resources_flag(command, carried_resources);
  command.add_switch(beside_global_hub, "beside-global-hub",
                     "Reconcile migrations although multicluster-global-hub is installed, whose manager does so, too.");
  command.add_switch(leader_elect, "leader-elect", "Use leader election; required with more than one replica.");
  command.add_duration(lease_duration, "leader-elect-lease-duration",
                       "How long standbys wait after the last observed renewal before they acquire the Lease.");
  command.add_duration(renew_deadline, "leader-elect-renew-deadline",
                       "How long the leader retries to renew the Lease before it stops leading.");
  command.add_duration(retry_period, "leader-elect-retry-period",
                       "Time between attempts to acquire or renew the Lease.");
  command.add(object_name_flag(lease_name, "leader-elect-resource-name", "Name of the Lease."));
  command.add(namespace_flag(lease_namespace, "leader-elect-resource-namespace", "that of --namespace",
                             "Namespace of the Lease."));
  serving.add_to(command);
  ui.add_to(command);
  command.add_integer(threads, "threads", 0, 256, "Number of threads for connections to API servers; 0: one per CPU.");
  command.add_number(
      kube_api_qps, "kube-api-qps",
      "Requests per second to each API server; 0 or less: no client-side limit, only the server's priority "
      "and fairness.");
  command.add_integer(kube_api_burst, "kube-api-burst", 1, 1'000'000,
                      "Burst of requests before --kube-api-qps throttles them.");
  command.add_duration(shutdown_grace_period, "shutdown-grace-period",
                       "Time from SIGTERM until unfinished work is cancelled. Keep it some seconds below the pod's "
                       "terminationGracePeriodSeconds.");
  log.add_to(command);
}

void ManagerOptions::check() const {
  using async::format_duration;
  if (ui.auth != "none" && ui.address == "0")
    throw UsageError("--ui-auth=" + ui.auth + " needs --ui-bind-address: without it there is no page");
  // The Lease stores it in whole seconds.
  if (lease_duration < std::chrono::seconds{1})
    throw UsageError("--leader-elect-lease-duration (" + format_duration(lease_duration) + ") must be at least 1s");
  if (lease_duration <= renew_deadline)
    throw UsageError("--leader-elect-lease-duration (" + format_duration(lease_duration) +
                     ") must be longer than --leader-elect-renew-deadline (" + format_duration(renew_deadline) +
                     "): otherwise two replicas can lead at once");
  if (static_cast<double>(renew_deadline.count()) <= retry_jitter * static_cast<double>(retry_period.count()))
    throw UsageError("--leader-elect-renew-deadline (" + format_duration(renew_deadline) +
                     ") must be longer than 1.2 times --leader-elect-retry-period (" + format_duration(retry_period) +
                     "): otherwise one failed attempt loses the leadership");
}

std::string ManagerOptions::effective_namespace() const {
  if (!own_namespace.empty()) return own_namespace;
  std::ifstream file{pod_namespace_file};
  std::string name;
  if (file >> name) return name;
  return fallback_namespace;
}

kube::HttpApiOptions client_options(const ManagerOptions& options, std::string name) {
  kube::HttpApiOptions client;
  client.name = std::move(name);
  client.user_agent = "hubferry/" + std::string{obs::build_info().version};
  client.qps = options.kube_api_qps;
  client.burst = options.kube_api_burst;
  return client;
}

std::size_t ManagerOptions::effective_threads() const {
  if (threads > 0) return static_cast<std::size_t>(threads);
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace hubferry::app
