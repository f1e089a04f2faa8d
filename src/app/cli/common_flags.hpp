#pragma once

#include <memory>
#include <string>

#include "app/cli/command_line.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/obs/log_sink.hpp"

namespace hubferry::app {

// Flags that several commands share, so that they have the same meaning and help in each.

/// --log-level and --log-format, of every long-running command.
struct LogFlags {
  obs::Level level = obs::Level::info;
  obs::LogFormat format = obs::LogFormat::json;

  void add_to(Command& command);
  /// Logs go to standard error, in colour if that is a terminal and NO_COLOR is not set.
  [[nodiscard]] obs::LogSink::Options sink_options() const;
};

/// --metrics-bind-address and --health-probe-bind-address.
struct ServingFlags {
  std::string metrics_address = ":8080";
  std::string health_address = ":8081";

  void add_to(Command& command);
};

/// --ui-bind-address and --ui-auth.
struct UiFlags {
  std::string address = "0";
  std::string auth = "none";  // or "token"

  void add_to(Command& command);
  /// Without --ui-auth, for commands that serve the page on loopback only.
  void add_address_to(Command& command);
};

/// --kubeconfig of the global hub.
void add_kubeconfig_flag(Command& command, std::string& file);

/// --context of that kubeconfig. The environment variable is not read.
void add_context_flag(Command& command, std::string& context);

/// --output, -o. The environment variable is not read.
void add_output_flag(Command& command, std::string& target, std::vector<std::string> choices, std::string help);

/// A flag for a namespace. An empty value is allowed if `target` is empty, and means the default.
Flag namespace_flag(std::string& target, std::string name, std::string default_text, std::string help);

/// A flag for the name of an object; `target` holds the default.
Flag object_name_flag(std::string& target, std::string name, std::string help);

/// --carried-resources of manager and plan.
void add_carried_resources_flag(Command& command, std::string& file);

/// Reads the file of --carried-resources; see parse_carried_resources(). Null if `file` is empty: the default.
/// Throws kube::ConfigError, which names the file and the field.
std::shared_ptr<const hubagent::CarriedResources> read_carried_resources(const std::string& file);

}  // namespace hubferry::app
