#include "app/commands/klusterlet_command.hpp"

#include <algorithm>
#include <cstdlib>

#include "app/cli/flag_values.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

namespace {

constexpr auto least_certificate_lifetime = std::chrono::hours{1};

Flag bootstrap_flag(std::vector<std::filesystem::path>& target) {
  return {.name = "bootstrap-kubeconfig",
          .placeholder = "FILE",
          .help = "Bootstrap kubeconfig of a hub. Repeat it for each hub, in order of preference.",
          .default_text = "",
          .apply =
              [&target](const std::string& text) {
                if (text.empty()) throw std::invalid_argument("a file name is required");
                const std::filesystem::path file = std::filesystem::path{text}.lexically_normal();
                if (std::ranges::find(target, file) != target.end())
                  throw std::invalid_argument("'" + text + "' is given twice: each hub needs its own");
                target.push_back(file);
              },
          .short_name = "",
          .repeatable = true};
}

Flag lifetime_flag(std::chrono::seconds& target) {
  const auto apply = [&target](const std::string& text) {
    if (text == "0") {
      target = std::chrono::seconds{0};
      return;
    }
    // Plain numbers are seconds, as in Open Cluster Management.
    const bool is_plain_number = text.find_first_not_of("0123456789") == std::string::npos;
    const auto lifetime = parse_positive_duration(is_plain_number ? text + "s" : text);
    if (lifetime < least_certificate_lifetime)
      throw std::invalid_argument("'" + text + "' is too short: use 0 (the hub decides) or at least 1h");
    target = std::chrono::duration_cast<std::chrono::seconds>(lifetime);
  };
  return {.name = "client-cert-expiration",
          .placeholder = "DURATION",
          .help = "Requested lifetime of client certificates; 0: the hub decides.",
          .default_text = "0",
          .apply = apply,
          .short_name = ""};
}

Flag urls_flag(std::vector<std::string>& target) {
  const auto apply = [&target](const std::string& text) {
    auto urls = parse_list(text);
    for (const auto& url : urls)
      if (!url.starts_with("https://") || url.size() == std::string_view{"https://"}.size())
        throw std::invalid_argument("'" + url + "' must begin with https://");
    target = std::move(urls);
  };
  return {.name = "spoke-external-server-urls",
          .placeholder = "URLS",
          .help = "Comma-separated https URLs at which this cluster's API server is reachable from outside.",
          .default_text = "",
          .apply = apply,
          .short_name = ""};
}

Flag annotations_flag(std::map<std::string, std::string>& target) {
  const auto apply = [&target](const std::string& text) {
    std::map<std::string, std::string> annotations;
    for (const auto& item : parse_list(text)) {
      const auto equals = item.find('=');
      if (equals == std::string::npos || equals == 0)
        throw std::invalid_argument("'" + item + "' must be of the form NAME=VALUE");
      if (!item.starts_with(ocm::names::agent_annotation_prefix))
        throw std::invalid_argument("'" + item + "' must begin with " + ocm::names::agent_annotation_prefix);
      annotations[item.substr(0, equals)] = item.substr(equals + 1);
    }
    target = std::move(annotations);
  };
  return {.name = "cluster-annotations",
          .placeholder = "ANNOTATIONS",
          .help =
              "Comma-separated annotations NAME=VALUE for the ManagedCluster that the agent creates. Names must begin "
              "with agent.open-cluster-management.io.",
          .default_text = "",
          .apply = apply,
          .short_name = ""};
}

Flag gates_flag(bool& multiple_hubs) {
  const auto apply = [&multiple_hubs](const std::string& text) {
    for (const auto& item : parse_list(text)) {
      const auto equals = item.find('=');
      parse_choice(item.substr(0, equals), {"MultipleHubs"});
      if (equals == std::string::npos) throw std::invalid_argument("'" + item + "' needs =true or =false");
      multiple_hubs = parse_switch(item.substr(equals + 1));
    }
  };
  return {
      .name = "feature-gates",
      .placeholder = "GATES",
      .help =
          "MultipleHubs=true: switch to the next hub if the current one denies this cluster or is unreachable. Needs "
          "at least two bootstrap kubeconfigs. With MultipleHubs=false the agent stays with its only hub.",
      .default_text = "MultipleHubs=true",
      .apply = apply,
      .short_name = ""};
}

Flag cluster_flag(std::string& target) {
  return {.name = "cluster-name",
          .placeholder = "NAME",
          .help = "Name of this cluster on its hubs; also its namespace there.",
          .default_text = "from the previous registration, or random",
          .apply = [&target](const std::string& text) { target = parse_namespace(text); },
          .short_name = ""};
}

Flag agent_flag(std::string& target) {
  const auto apply = [&target](const std::string& text) {
    if (text.size() > 63 || text.find_first_of(": \t\r\n") != std::string::npos)
      throw std::invalid_argument("'" + text +
                                  "' is not a valid agent name: use at most 63 characters, without ':' and spaces");
    target = text;
  };
  return {.name = "agent-id",
          .placeholder = "NAME",
          .help = "Name of this agent in its client certificates.",
          .default_text = "from the previous registration, or random",
          .apply = apply,
          .short_name = ""};
}

Flag suffixes_flag(std::vector<std::string>& target) {
  return {.name = "reserved-cluster-claim-suffixes",
          .placeholder = "SUFFIXES",
          .help =
              "Comma-separated suffixes. ClusterClaims whose names end so are reported like the reserved ones: first, "
              "and without a limit.",
          .default_text = "",
          .apply = [&target](const std::string& text) { target = parse_list(text); },
          .short_name = ""};
}

}  // namespace

void KlusterletOptions::add_to(Command& command) {
  command.add(cluster_flag(cluster_name));
  command.add(bootstrap_flag(bootstrap_kubeconfigs));
  command.add_text(hub_kubeconfig_dir, "hub-kubeconfig-dir", "DIRECTORY",
                   "Directory for the credentials of the current hub. Created if missing.");
  command.add_duration(hub_connection_timeout, "hub-connection-timeout",
                       "Switch to the next hub if no heartbeat, or no registration, has succeeded on the current one "
                       "for this long. Keep "
                       "it well above 75s, the longest interval between heartbeats.");
  command.add(gates_flag(multiple_hubs));
  command.add_text(kubeconfig, "kubeconfig", "FILE",
                   "Kubeconfig of this cluster's own API server: for its health, and for the Klusterlet resource if no "
                   "--bootstrap-kubeconfig is given.");
  command.add(object_name_flag(klusterlet_name, "klusterlet-name", "Name of the Klusterlet resource to follow."));
  command.add(namespace_flag(own_namespace, "namespace", own_namespace,
                             "Namespace of the Secrets, if the hubs are read from a Klusterlet."));
  command.add(agent_flag(agent_id));
  command.add(lifetime_flag(certificate_lifetime));
  command.add_duration(healthcheck_period, "cluster-healthcheck-period",
                       "Interval between checks of this cluster's health.");
  command.add(urls_flag(external_server_urls));
  command.add(annotations_flag(cluster_annotations));
  command.add_integer(most_custom_claims, "max-custom-cluster-claims", 0, 1000,
                      "How many ClusterClaims of this cluster are reported to the hub, besides the reserved ones.");
  command.add(suffixes_flag(reserved_claim_suffixes));
  command.add_switch(leader_elect, "leader-elect",
                     "If the hubs are read from a Klusterlet: only one of several replicas is the agent, the others "
                     "stand by. Without it, run one replica.");
  command.add(object_name_flag(lease_name, "leader-elect-resource-name",
                               "Name of the Lease in --namespace. The default is that of Open Cluster Management's "
                               "agent in Singleton mode, so that the two never run at once."));
  command.add_duration(lease_duration, "leader-elect-lease-duration",
                       "How long standbys wait after the last observed renewal before they acquire the Lease.");
  command.add_duration(renew_deadline, "leader-elect-renew-deadline",
                       "How long the agent retries to renew the Lease before it exits.");
  command.add_duration(retry_period, "leader-elect-retry-period",
                       "Time between attempts to acquire or renew the Lease.");
  serving.add_to(command);
  command.add_duration(shutdown_grace_period, "shutdown-grace-period",
                       "Time from SIGTERM until unfinished work is cancelled.");
  log.add_to(command);
}

void KlusterletOptions::check() const {
  try {
    auto election = election_options();
    election.identity = "checked";
    election.validate();
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string{"leader election: "} + error.what());
  }
  if (!from_files()) {
    if (kubeconfig.empty() && std::getenv("KUBERNETES_SERVICE_HOST") == nullptr)
      throw UsageError(
          "no hubs given: use --bootstrap-kubeconfig for each hub and --hub-kubeconfig-dir, or --kubeconfig of this "
          "cluster to follow its Klusterlet");
    return;
  }
  if (hub_kubeconfig_dir.empty()) throw UsageError("--hub-kubeconfig-dir is required with --bootstrap-kubeconfig");
  if (const auto problem = klusterlet::bootstrap_problem(bootstrap_kubeconfigs.size(), multiple_hubs))
    throw UsageError("--bootstrap-kubeconfig: " + *problem +
                     (bootstrap_kubeconfigs.size() == 1 ? " (or set --feature-gates MultipleHubs=false)" : ""));
}

klusterlet::ClusterFactsOptions KlusterletOptions::facts_options() const {
  klusterlet::ClusterFactsOptions options;
  options.most_custom_claims = static_cast<std::size_t>(most_custom_claims);
  options.reserved_suffixes = reserved_claim_suffixes;
  return options;
}

kube::LeaderElectionOptions KlusterletOptions::election_options() const {
  kube::LeaderElectionOptions options;
  options.name = lease_name;
  options.ns = own_namespace;
  options.lease_duration = lease_duration;
  options.renew_deadline = renew_deadline;
  options.retry_period = retry_period;
  return options;
}

klusterlet::AgentOptions KlusterletOptions::agent_options() const {
  klusterlet::AgentOptions options;
  options.cluster_name = cluster_name;
  options.agent_name = agent_id;
  options.connection_timeout = hub_connection_timeout;
  options.certificate_lifetime = certificate_lifetime;
  options.healthcheck_period = healthcheck_period;
  options.external_server_urls = external_server_urls;
  options.cluster_annotations = cluster_annotations;
  options.multiple_hubs = multiple_hubs;
  return options;
}

}  // namespace hubferry::app
