#include "app/commands/sim_options.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "app/cli/flag_values.hpp"

namespace hubferry::app {

namespace {

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

}  // namespace

std::string hub_name_of(const std::string& file) {
  const auto name = std::filesystem::path(file).filename().string();
  return parse_namespace(name.substr(0, name.find('.')));
}

void SimOptions::add_to(Command& command) {
  command.add(hubs_flag(*this));
  command.add_integer(clusters, "clusters", 0, 100'000, "Number of managed clusters on the first hub.");
  command.add_switch(agents, "agents",
                     "Run an agent for each cluster, which keeps it Available and follows migrations.");
  command.add_switch(managed_service_accounts, "managed-service-accounts",
                     "Serve ManagedServiceAccounts on the global hub.");
  command.add_text(kubeconfig_dir, "kubeconfig-dir", "DIRECTORY",
                   "Directory for the admin kubeconfigs global.kubeconfig, hub1.kubeconfig and so on.");
  command.add(listen_flag(listen));
  command.add_switch(insecure_http, "insecure-http",
                     "Serve plain HTTP without authentication: everybody is admin. For local load tests.");
  command.add(seed_flag(seed));
  command.add_text(faults, "faults", "FILE", "Faults to inject: a list of rules in YAML or JSON, as described above.");
  command.add(attach_flag(attached));
  add_output_flag(command, output, {"text", "json"}, "Output format: text or json.");
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

}  // namespace hubferry::app
