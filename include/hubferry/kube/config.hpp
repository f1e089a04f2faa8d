#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"

namespace hubferry::kube {

/// A configuration that cannot work. The message names the file and the field, and never holds a secret.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An exec credential plugin (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string install_hint;
  bool provide_cluster_info = false;

  /// Whether it may talk to a person (`interactiveMode`).
  enum class Interaction { never, if_available, always };
  Interaction interaction = Interaction::never;
  /// Whether a person waits for what we do; set by commands. Then requests wait as long as the plugin runs (a login in
  /// a browser takes a while), and what it writes to standard error is shown as it comes, as kubectl does.
  enum class Person { none, waits, has_terminal };
  Person person = Person::none;

  /// True if it gets the terminal.
  [[nodiscard]] bool is_interactive() const {
    return person == Person::has_terminal && interaction != Interaction::never;
  }
};

/// How to reach and trust one API server, and who we are there: a kubeconfig's current context, resolved. File
/// references are absolute; their content is read here. Token files are re-read when they change, those of certificates
/// and keys when they and the server do not agree any more.
struct ClientConfig {
  std::string name;    // of the context, for logs
  std::string source;  // the file it came from, for messages

  std::string server;             // https://host:port[/prefix]
  std::string tls_server_name;    // empty: the host of `server`
  std::string ca_pem;             // empty: the system's authorities
  std::filesystem::path ca_file;  // what ca_pem was read from; empty: it was inline
  bool insecure_skip_tls_verify = false;
  std::string proxy_url;       // empty: as the environment says (HTTPS_PROXY, NO_PROXY). May hold a password
  std::string cluster_name;    // the cluster stanza's name
  std::string ns = "default";  // the context's namespace

  std::string client_certificate_pem;
  std::string client_key_pem;
  std::filesystem::path client_certificate_file;  // what the two were read from; empty: they were inline
  std::filesystem::path client_key_file;
  std::string token;
  std::filesystem::path token_file;
  std::string username;
  std::string password;
  std::optional<ExecPlugin> exec;
};

/// Reads one kubeconfig file; `context` empty means its current-context.
ClientConfig load_kubeconfig(const std::filesystem::path& file, const std::string& context = {});
/// Reads kubeconfig text as found in a Secret. Relative file references are resolved against `base`; with no base
/// they are refused, as are exec plugins: what comes from a Secret must not run programs or read files here.
ClientConfig parse_kubeconfig(std::string_view text, const std::string& source,
                              const std::optional<std::filesystem::path>& base, const std::string& context = {});
/// Reads kubeconfig text from a Secret whose other keys are the files that it refers to: plain names, such
/// as `tls.crt`. A name that is not among `files` is refused, as are exec plugins.
ClientConfig parse_kubeconfig_of_secret(std::string_view text, const std::string& source,
                                        const std::map<std::string, std::string>& files);
/// Reads the files that exist and merges them as client-go does: of two clusters, users or contexts of one name the
/// first wins, whole; current-context is the first that is set. Files that do not exist are skipped, all missing is an
/// error.
ClientConfig load_kubeconfigs(const std::vector<std::filesystem::path>& files, const std::string& context = {});

/// Where configurations are looked for: the process's own environment, unless a test replaces it.
struct ConfigLocations {
  /// The value of an environment variable; nullopt when it is not set.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";

  ConfigLocations();
};

/// The pod's own service account. Its token file is followed, since the kubelet rotates it.
ClientConfig in_cluster_config(const ConfigLocations& locations = {});
/// As kubectl and controller-runtime look for it: the flag's file, $KUBECONFIG (several files, merged),
/// in-cluster, ~/.kube/config.
ClientConfig find_config(const std::string& kubeconfig_flag, const std::string& context = {},
                         const ConfigLocations& locations = {});

/// Reads the files of authority, certificate and key again, as far as `config` was made from such. True when one of
/// them has changed; a file that cannot be read, or holds no PEM, changes nothing.
bool reread_files(ClientConfig& config);

/// A kubeconfig file for this configuration, with everything inline.
std::string to_kubeconfig(const ClientConfig& config);

}  // namespace hubferry::kube
