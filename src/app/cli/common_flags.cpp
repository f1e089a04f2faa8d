#include "app/cli/common_flags.hpp"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "app/cli/files.hpp"
#include "app/cli/flag_values.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/obs/bind_address.hpp"

namespace hubferry::app {

namespace {

Flag address_flag(std::string& target, std::string name, std::string help) {
  return {.name = std::move(name),
          .placeholder = "ADDRESS",
          .help = std::move(help),
          .default_text = target,
          .apply =
              [&target](const std::string& text) {
                try {
                  obs::parse_bind_address(text);
                } catch (const std::invalid_argument& error) {
                  throw std::invalid_argument(std::string{error.what()} + ", or 0 to disable it");
                }
                target = text;
              },
          .short_name = ""};
}

}  // namespace

void LogFlags::add_to(Command& command) {
  command.add({.name = "log-level",
               .placeholder = "LEVEL",
               .help = "Minimum log level: debug, info, warn or error.",
               .default_text = std::string(to_string(level)),
               .apply =
                   [this](const std::string& text) {
                     level = *obs::parse_level(parse_choice(text, {"debug", "info", "warn", "error"}));
                   },
               .short_name = "",
               .choices = {"debug", "info", "warn", "error"}});
  command.add(
      {.name = "log-format",
       .placeholder = "FORMAT",
       .help = "Log format: json (one object per line) or text.",
       .default_text = std::string(to_string(format)),
       .apply =
           [this](const std::string& text) { format = *obs::parse_log_format(parse_choice(text, {"json", "text"})); },
       .short_name = "",
       .choices = {"json", "text"}});
}

obs::LogSink::Options LogFlags::sink_options() const {
  const char* no_color = std::getenv("NO_COLOR");
  const bool colour_unwanted = no_color != nullptr && *no_color != '\0';
  obs::LogSink::Options options;
  options.format = format;
  options.level = level;
  options.fd = STDERR_FILENO;
  options.colour = isatty(STDERR_FILENO) == 1 && !colour_unwanted;
  return options;
}

void ServingFlags::add_to(Command& command) {
  command.add(address_flag(metrics_address, "metrics-bind-address",
                           "The address that serves /metrics: HOST:PORT, or 0 to disable it."));
  command.add(address_flag(health_address, "health-probe-bind-address",
                           "The address that serves /livez, /readyz and /healthz: HOST:PORT, or 0 to disable it."));
}

void UiFlags::add_to(Command& command) {
  add_address_to(command);
  command.add_choice(
      auth, "ui-auth", "", "METHOD", {"none", "token"},
      "Authentication of the page: none (all clients that reach the address) or token (users with a token of the "
      "global hub that may list migrations there).");
}

void UiFlags::add_address_to(Command& command) {
  command.add(address_flag(address, "ui-bind-address",
                           "The address that serves the page, which shows migrations live: HOST:PORT, or 0 to disable "
                           "it."));
}

void add_kubeconfig_flag(Command& command, std::string& file) {
  command.add_text(file, "kubeconfig", "FILE",
                   "Kubeconfig of the global hub. Without it, the first of these that exists: $KUBECONFIG, the pod's "
                   "service account, ~/.kube/config.");
}

void add_context_flag(Command& command, std::string& context) {
  command.add_text(context, "context", "NAME", "Context of the kubeconfig, instead of its current one.");
  command.not_from_environment({"context"});
}

void add_output_flag(Command& command, std::string& target, std::vector<std::string> choices, std::string help) {
  command.add_choice(target, "output", "o", "FORMAT", std::move(choices), std::move(help));
  command.not_from_environment({"output"});
}

Flag namespace_flag(std::string& target, std::string name, std::string default_text, std::string help) {
  const bool has_default = !target.empty();
  const auto apply = [&target, has_default](const std::string& text) {
    target = text.empty() && !has_default ? text : parse_namespace(text);
  };
  return {.name = std::move(name),
          .placeholder = "NAMESPACE",
          .help = std::move(help),
          .default_text = std::move(default_text),
          .apply = apply,
          .short_name = ""};
}

Flag object_name_flag(std::string& target, std::string name, std::string help) {
  return {.name = std::move(name),
          .placeholder = "NAME",
          .help = std::move(help),
          .default_text = target,
          .apply = [&target](const std::string& text) { target = parse_object_name(text); },
          .short_name = ""};
}

void add_carried_resources_flag(Command& command, std::string& file) {
  command.add_text(file, "carried-resources", "FILE",
                   "Resources to copy with each cluster, in addition to the default ones: a file with a list "
                   "carriedResources, see docs/migrations.md. Read once, at startup.");
}

std::shared_ptr<const hubagent::CarriedResources> read_carried_resources(const std::string& file) {
  if (file.empty()) return nullptr;
  std::string text;
  try {
    text = read_file(file);
  } catch (const std::runtime_error& error) {
    throw kube::ConfigError(std::string{error.what()} + " (--carried-resources)");
  }
  return std::make_shared<const hubagent::CarriedResources>(hubagent::parse_carried_resources(text, file));
}

}  // namespace hubferry::app
