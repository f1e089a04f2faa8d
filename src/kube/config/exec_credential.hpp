#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/credentials.hpp"

namespace hubferry::kube {

/// What an exec plugin answers.
struct ExecCredential {
  std::string token;
  std::optional<ClientCertificate> certificate;
  std::optional<async::WallTime> expires;  // nullopt: good until the server refuses it
};

/// Reads a plugin's standard output. Throws ConfigError with a reason that quotes nothing of it.
ExecCredential parse_exec_credential(std::string_view output, const std::string& api_version);

/// The content of KUBERNETES_EXEC_INFO: what the plugin is asked for.
std::string exec_info(const ClientConfig& config);

/// The last line of what a program wrote to its standard error, fit for a log: printable, short, and with whatever
/// looks like a secret, or is a value of `environment`, taken out.
std::string last_error_line(std::string_view errors, const std::map<std::string, std::string>& environment);

}  // namespace hubferry::kube
