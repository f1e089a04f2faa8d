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
      if (name == global_name) throw std::invalid_argument("'global' is the global hub, which is there anyway");
    }
  };
  return {.name = "hubs",
          .placeholder = "LIST",
          .help = "The hubs beside the global one, with commas between them.",
          .default_text = "hub1,hub2",
          .apply = apply,
          .short_name = ""};
}

Flag listen_flag(obs::BindAddress& target) {
  const auto apply = [&target](const std::string& text) {
    const auto read = obs::parse_bind_address(text);
    if (!read) throw std::invalid_argument("'" + text + "' is no address: use 127.0.0.1:0");
    target = *read;
    if (target.host == "localhost") target.host = "127.0.0.1";
    if (target.host.empty()) target.host = "0.0.0.0";
  };
  return {.name = "listen",
          .placeholder = "ADDRESS:PORT",
          .help = "Where the global hub listens; the hubs take the ports that follow. Port 0: any free ones.",
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
          .help = "Names, clusters and faults depend on it: the same seed gives the same ones.",
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
              "Make a hub of the real API server that this kubeconfig leads to; its name is the file's, up to the "
              "first dot. One that is called global becomes the global hub of the others. Repeatable. Simulated "
              "servers are started beside only when --hubs is given.",
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
  command.add_integer(clusters, "clusters", 0, 100'000,
                      "How many managed clusters the first hub has from the beginning.");
  command.add_switch(agents, "agents", "Each of them has an agent, which keeps it available and follows migrations.");
  command.add_switch(managed_service_accounts, "managed-service-accounts",
                     "The global hub serves ManagedServiceAccounts.");
  command.add_text(kubeconfig_dir, "kubeconfig-dir", "FOLDER",
                   "Where global.kubeconfig, hub1.kubeconfig and so on are written: an admin's ways in.");
  command.add(listen_flag(listen));
  command.add_switch(insecure_http, "insecure-http",
                     "Plain HTTP, and everybody is admin: for load tests on a machine of your own.");
  command.add(seed_flag(seed));
  command.add_text(faults, "faults", "FILE", "What goes wrong: a list of rules in YAML or JSON, as told above.");
  command.add(attach_flag(attached));
  command.add_choice(output, "output", "o", "FORMAT", {"text", "json"}, "How to tell what was made: text or json.");
  command.not_from_environment({"output"});
  log.add_to(command);
}

void SimOptions::check() const {
  if (simulates() && kubeconfig_dir.empty() && !insecure_http)
    throw UsageError("--kubeconfig-dir is missing: without it nobody could get in");
  if (simulates() && hubs.empty() && clusters > 0) throw UsageError("--clusters needs a hub: name one with --hubs");
  // Each hub has the port after its predecessor's; beyond the last one they would begin anew at 0.
  constexpr std::size_t last_port = std::numeric_limits<std::uint16_t>::max();
  if (simulates() && listen.port != 0 && listen.port + hubs.size() > last_port)
    throw UsageError("--listen: " + std::to_string(hubs.size()) + " hubs need the ports after " +
                     std::to_string(listen.port) + ", and the last port is " + std::to_string(last_port));
  if (!simulates() && !faults.empty()) throw UsageError("--faults needs simulated servers: name some with --hubs");
  if (!attached.empty() && hubs_given)
    for (const auto& file : attached)
      if (const auto name = hub_name_of(file); name == global_name || std::ranges::find(hubs, name) != hubs.end())
        throw UsageError("--attach " + file + " and a simulated server would both be called " + name);
}

}  // namespace hubferry::app
