#include "load_options.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>

namespace hubferry::perf {

namespace {

constexpr const char* usage = R"(usage: ./dev perf load [options]

Starts `hubferry sim` and `hubferry manager` as processes that talk HTTPS, migrates all clusters of the first hub to the others,
and looks at every cluster at the end. Then a bare client sends the least that such migrations have to write to a fresh simulator:
the floor.

  --profile NAME        ci: 4 hubs, 500 clusters, 10 migrations (default); headline: 20, 5,000, 100;
                        10k: 20, 10,000, 200; 20k: 20, 20,000, 400. The options below change it
  --hubs N              the first has all clusters
  --clusters N
  --migrations N        all at once, from the first hub to the others in turn
  --fleet KIND          small (default), mixed or telco: see `hubferry sim --help`
  --secrets N           more Secrets for each cluster
  --latency MS          of every request
  --errors SHARE        of the requests are answered with 500
  --slow SHARE          of the requests take 200 ms longer
  --cut-watches SHARE   of the events break their watch
  --slow-hub MS         latency of the last hub alone
  --refusing-hub SHARE  of its requests are answered with 429 by the last hub but one
  --restart             kill the manager as soon as all clusters are in flight, and start another one
  --seed N
  --in-flight N         clusters of one hub that are processed at once (default 50)
  --timeout SECONDS     for all migrations (default 900)
  --no-floor            do not measure the floor
  --hubferry FILE       the program (default build/hubferry)
  --directory DIR       keep kubeconfigs and logs there
  --json FILE, --svg FILE
)";

[[noreturn]] void complain(const std::string& message) {
  std::fprintf(stderr, "load: %s; see --help\n", message.c_str());
  std::exit(2);
}

double number(const std::string& name, const std::string& text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || value < least || value > most)
    complain("--" + name + " takes a number from " + std::to_string(least) + " to " + std::to_string(most) + ", not '" +
             text + "'");
  return value;
}

void apply_profile(LoadOptions& options, const std::string& name) {
  struct Size {
    int hubs, clusters, migrations;
  };
  static const std::map<std::string, Size> profiles{
      {"ci", {4, 500, 10}}, {"headline", {20, 5'000, 100}}, {"10k", {20, 10'000, 200}}, {"20k", {20, 20'000, 400}}};
  const auto found = profiles.find(name);
  if (found == profiles.end()) complain("there is no profile '" + name + "'");
  options.profile = name;
  options.hubs = found->second.hubs;
  options.clusters = found->second.clusters;
  options.migrations = found->second.migrations;
}

std::string share(double value) {
  return std::to_string(value);
}

}  // namespace

sim::FleetPlan LoadOptions::plan() const {
  sim::FleetPlan plan;
  plan.clusters = static_cast<std::size_t>(clusters);
  plan.kind = fleet == "small"   ? sim::FleetKind::small
              : fleet == "telco" ? sim::FleetKind::telco
                                 : sim::FleetKind::mixed;
  plan.secrets = static_cast<std::size_t>(secrets);
  plan.seed = seed;
  return plan;
}

std::string LoadOptions::faults() const {
  std::string rules;
  if (latency_ms > 0) rules += "- {always: true, delay: " + std::to_string(latency_ms) + "ms}\n";
  if (errors > 0) rules += "- {rate: " + share(errors) + ", fail: 500}\n";
  if (slow > 0) rules += "- {rate: " + share(slow) + ", delay: 200ms}\n";
  if (slow_hub_ms > 0)
    rules += "- {server: " + hub(hubs) + ", always: true, delay: " + std::to_string(slow_hub_ms) + "ms}\n";
  if (refusing_hub > 0) rules += "- {server: " + hub(hubs - 1) + ", rate: " + share(refusing_hub) + ", fail: 429}\n";
  if (cut_watches > 0) rules += "- {rate: " + share(cut_watches) + ", watch: cut}\n";
  return rules;
}

LoadOptions parse_load_options(int argc, char** argv) {
  LoadOptions options;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto integer = [](int& target, int least, int most) {
    return [&target, least, most](const std::string& name, const std::string& text) {
      target = static_cast<int>(number(name, text, least, most));
    };
  };
  const auto part = [](double& target) {
    return [&target](const std::string& name, const std::string& text) { target = number(name, text, 0, 1); };
  };
  const auto word = [](std::string& target) {
    return [&target](const std::string&, const std::string& text) { target = text; };
  };
  const std::map<std::string, std::function<void(const std::string&, const std::string&)>> flags{
      {"profile", [&](const std::string&, const std::string& text) { apply_profile(options, text); }},
      {"hubs", integer(options.hubs, 2, 1'000)},
      {"clusters", integer(options.clusters, 1, 100'000)},
      {"migrations", integer(options.migrations, 1, 10'000)},
      {"fleet", word(options.fleet)},
      {"secrets", integer(options.secrets, 0, 1'000)},
      {"latency", integer(options.latency_ms, 0, 60'000)},
      {"errors", part(options.errors)},
      {"slow", part(options.slow)},
      {"cut-watches", part(options.cut_watches)},
      {"slow-hub", integer(options.slow_hub_ms, 0, 60'000)},
      {"refusing-hub", part(options.refusing_hub)},
      {"seed",
       [&](const std::string& name, const std::string& text) {
         options.seed = static_cast<std::uint64_t>(number(name, text, 0, 1e15));
       }},
      {"in-flight", integer(options.in_flight, 1, 10'000)},
      {"timeout", integer(options.timeout_seconds, 1, 100'000)},
      {"hubferry", word(options.hubferry)},
      {"directory", word(options.directory)},
      {"json", word(options.json_file)},
      {"svg", word(options.svg_file)},
  };
  for (const auto& argument : arguments)
    if (argument == "--help" || argument == "-h") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
  // The profile first: the others change it, wherever they stand.
  for (const bool profile : {true, false})
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == "--no-floor") {
        options.floor = false;
        continue;
      }
      if (arguments[i] == "--restart") {
        options.restart = true;
        continue;
      }
      const auto name = arguments[i].starts_with("--") ? arguments[i].substr(2) : std::string{};
      const auto flag = flags.find(name);
      if (flag == flags.end()) complain("unknown argument '" + arguments[i] + "'");
      if (++i == arguments.size()) complain("--" + name + " needs a value");
      if ((name == "profile") == profile) flag->second(name, arguments[i]);
    }
  if (options.fleet != "small" && options.fleet != "mixed" && options.fleet != "telco")
    complain("--fleet takes small, mixed or telco");
  if (options.migrations > options.clusters) complain("there are more migrations than clusters");
  return options;
}

}  // namespace hubferry::perf
