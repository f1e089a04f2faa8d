#include "app/manager/manager_options.hpp"

#include <fstream>
#include <thread>

#include "app/cli/flag_values.hpp"
#include "app/manager/carried_file.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

constexpr const char* pod_namespace_file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
constexpr const char* fallback_namespace = "hubferry-system";

// Retries are spread by up to a fifth, so this many periods must fit before the deadline.
constexpr double retry_jitter = 1.2;

Flag namespace_flag(std::string& target, std::string name, std::string default_text, std::string help) {
  return {.name = std::move(name),
          .placeholder = "NAMESPACE",
          .help = std::move(help),
          .default_text = std::move(default_text),
          .apply = [&target](const std::string& text) { target = text.empty() ? text : parse_namespace(text); },
          .short_name = ""};
}

Flag controllers_flag(std::vector<std::string>& target) {
  std::string all;
  for (const auto& name : target) all += (all.empty() ? "" : ",") + name;
  const auto apply = [&target](const std::string& text) {
    auto names = parse_list(text);
    if (names.empty())
      throw std::invalid_argument("at least one controller must run: " + join_choices(controller_names()));
    for (const auto& name : names) parse_choice(name, controller_names());
    target = std::move(names);
  };
  return {.name = "controllers",
          .placeholder = "LIST",
          .help = "The controllers to run, with commas between them.",
          .default_text = all,
          .apply = apply,
          .short_name = ""};
}

}  // namespace

const std::vector<std::string>& controller_names() {
  static const std::vector<std::string> names{"migration"};
  return names;
}

void ManagerOptions::add_to(Command& command) {
  command.add_text(kubeconfig, "kubeconfig", "FILE",
                   "How to reach the global hub. Without it: what KUBECONFIG names, the pod's service account, "
                   "~/.kube/config, whichever is there first.");
  command.add(namespace_flag(own_namespace, "namespace", "the pod's own, else hubferry-system",
                             "Where the Lease and the manager's own objects live."));
  command.add(
      namespace_flag(watch_namespace, "watch-namespace", "all", "Only resources in this namespace are acted upon."));
  command.add(controllers_flag(controllers));
  command.add_integer(max_concurrent_migrations, "max-concurrent-migrations", 1, 100'000,
                      "How many migrations run at once; further ones wait.");
  command.add_integer(clusters_in_flight_per_hub, "clusters-in-flight-per-hub", 1, 100'000,
                      "How many clusters of one hub are treated at once, over all migrations.");
  add_carried_resources_flag(command, carried_resources);
  command.add_switch(leader_elect, "leader-elect", "Act only while holding the Lease: for more than one replica.");
  command.add_duration(lease_duration, "leader-elect-lease-duration",
                       "After this long without a sign of life from the leader another replica takes over.");
  command.add_duration(renew_deadline, "leader-elect-renew-deadline",
                       "A leader that could not renew for this long stops acting.");
  command.add_duration(retry_period, "leader-elect-retry-period", "The pause between two attempts.");
  command.add({.name = "leader-elect-resource-name",
               .placeholder = "NAME",
               .help = "The Lease's name.",
               .default_text = lease_name,
               .apply = [this](const std::string& text) { lease_name = parse_object_name(text); },
               .short_name = ""});
  command.add(namespace_flag(lease_namespace, "leader-elect-resource-namespace", "that of --namespace",
                             "The Lease's namespace."));
  serving.add_to(command);
  command.add_integer(threads, "threads", 0, 256,
                      "How many threads serve the connections to API servers; 0: one for each CPU.");
  command.add_number(kube_api_qps, "kube-api-qps",
                     "Requests a second to each API server; 0 or below: no limit of our own, the server's fairness "
                     "rules apply.");
  command.add_integer(kube_api_burst, "kube-api-burst", 1, 1'000'000,
                      "How many requests may go out at once before --kube-api-qps holds them back.");
  command.add_duration(shutdown_grace_period, "shutdown-grace-period",
                       "From SIGTERM to the moment when unfinished work is cancelled. Keep it some seconds below the "
                       "pod's terminationGracePeriodSeconds.");
  log.add_to(command);
}

void ManagerOptions::check() const {
  using async::format_duration;
  // The Lease says it in whole seconds.
  if (lease_duration < std::chrono::seconds{1})
    throw UsageError("--leader-elect-lease-duration (" + format_duration(lease_duration) + ") must be 1s at least");
  if (lease_duration <= renew_deadline)
    throw UsageError("--leader-elect-lease-duration (" + format_duration(lease_duration) +
                     ") must be longer than --leader-elect-renew-deadline (" + format_duration(renew_deadline) +
                     "): else two replicas may lead at once");
  if (static_cast<double>(renew_deadline.count()) <= retry_jitter * static_cast<double>(retry_period.count()))
    throw UsageError("--leader-elect-renew-deadline (" + format_duration(renew_deadline) +
                     ") must be longer than 1.2 times --leader-elect-retry-period (" + format_duration(retry_period) +
                     "): else one failed attempt costs the lead");
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
