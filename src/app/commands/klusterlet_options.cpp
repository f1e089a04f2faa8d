#include "app/commands/klusterlet_options.hpp"

#include <cstdlib>

#include "app/cli/flag_values.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

namespace {

constexpr auto least_certificate_lifetime = std::chrono::hours{1};

Flag bootstrap_flag(std::vector<std::filesystem::path>& target) {
  return {.name = "bootstrap-kubeconfig",
          .placeholder = "FILE",
          .help = "A kubeconfig that may register with a hub. Give it once for each hub, the preferred one first.",
          .default_text = "",
          .apply =
              [&target](const std::string& text) {
                if (text.empty()) throw std::invalid_argument("the name of a file is needed");
                target.emplace_back(text);
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
    // Bare numbers are seconds, as Open Cluster Management writes them.
    const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
    const auto lifetime = parse_positive_duration(bare ? text + "s" : text);
    if (lifetime < least_certificate_lifetime)
      throw std::invalid_argument("'" + text + "' is too short: use 0 (the hub decides) or at least 1h");
    target = std::chrono::duration_cast<std::chrono::seconds>(lifetime);
  };
  return {.name = "client-cert-expiration",
          .placeholder = "DURATION",
          .help = "How long certificates shall be valid; 0: the hub decides.",
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
          .help = "Where others reach this cluster's API server, with commas between them. https only.",
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
              "Annotations of the ManagedCluster that the agent makes: NAME=VALUE, with commas between them. Only "
              "names of agent.open-cluster-management.io.",
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
  return {.name = "feature-gates",
          .placeholder = "GATES",
          .help =
              "MultipleHubs=true: leave a hub that denies this cluster or is lost, for the next one. Needs at least "
              "two bootstrap kubeconfigs. Without it the only one is used for ever.",
          .default_text = "MultipleHubs=true",
          .apply = apply,
          .short_name = ""};
}

Flag cluster_flag(std::string& target) {
  return {.name = "cluster-name",
          .placeholder = "NAME",
          .help = "This cluster's name on its hubs: that of a namespace there.",
          .default_text = "that of an earlier registration, else a random one",
          .apply = [&target](const std::string& text) { target = text.empty() ? text : parse_namespace(text); },
          .short_name = ""};
}

Flag agent_flag(std::string& target) {
  const auto apply = [&target](const std::string& text) {
    if (text.size() > 63 || text.find_first_of(": \t\r\n") != std::string::npos)
      throw std::invalid_argument("'" + text +
                                  "' is no name for an agent: at most 63 characters, without ':' or spaces");
    target = text;
  };
  return {.name = "agent-id",
          .placeholder = "NAME",
          .help = "This agent's name in its certificates.",
          .default_text = "that of an earlier registration, else a random one",
          .apply = apply,
          .short_name = ""};
}

Flag namespace_flag(std::string& target) {
  return {.name = "namespace",
          .placeholder = "NAMESPACE",
          .help = "Where the Secrets are, when the hubs are taken from a Klusterlet.",
          .default_text = target,
          .apply = [&target](const std::string& text) { target = parse_namespace(text); },
          .short_name = ""};
}

}  // namespace

void KlusterletOptions::add_to(Command& command) {
  command.add(cluster_flag(cluster_name));
  command.add(bootstrap_flag(bootstrap_kubeconfigs));
  command.add_text(hub_kubeconfig_dir, "hub-kubeconfig-dir", "FOLDER",
                   "Where the credential for the current hub is kept. Made where it is missing.");
  command.add_duration(
      hub_connection_timeout, "hub-connection-timeout",
      "A hub that no heartbeat has reached for this long, or that leaves a registration unanswered for as long, is "
      "left for the next one. Keep it well above 75s, the longest pause between two heartbeats.");
  command.add(gates_flag(multiple_hubs));
  command.add_text(
      kubeconfig, "kubeconfig", "FILE",
      "How to reach this cluster's own API server: for its health, and for the Klusterlet resource when no "
      "--bootstrap-kubeconfig is given.");
  command.add({.name = "klusterlet-name",
               .placeholder = "NAME",
               .help = "The Klusterlet resource to follow.",
               .default_text = klusterlet_name,
               .apply = [this](const std::string& text) { klusterlet_name = parse_object_name(text); },
               .short_name = ""});
  command.add(namespace_flag(own_namespace));
  command.add(agent_flag(agent_id));
  command.add(lifetime_flag(certificate_lifetime));
  command.add_duration(healthcheck_period, "cluster-healthcheck-period",
                       "How often this cluster's health is looked at.");
  command.add(urls_flag(external_server_urls));
  command.add(annotations_flag(cluster_annotations));
  serving.add_to(command);
  command.add_duration(shutdown_grace_period, "shutdown-grace-period",
                       "From SIGTERM to the moment when unfinished work is cancelled.");
  log.add_to(command);
}

void KlusterletOptions::check() const {
  if (!from_files()) {
    if (kubeconfig.empty() && std::getenv("KUBERNETES_SERVICE_HOST") == nullptr)
      throw UsageError(
          "which hubs? Give --bootstrap-kubeconfig for each of them and --hub-kubeconfig-dir, or --kubeconfig of this "
          "cluster to follow its Klusterlet");
    return;
  }
  if (hub_kubeconfig_dir.empty()) throw UsageError("--hub-kubeconfig-dir is needed beside --bootstrap-kubeconfig");
  if (const auto problem = klusterlet::bootstrap_problem(bootstrap_kubeconfigs.size(), multiple_hubs))
    throw UsageError("--bootstrap-kubeconfig: " + *problem +
                     (bootstrap_kubeconfigs.size() == 1 ? " (or say --feature-gates MultipleHubs=false)" : ""));
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
