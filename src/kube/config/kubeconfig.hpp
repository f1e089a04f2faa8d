#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/config.hpp"

namespace hubferry::kube {

/// Where a stanza stands, for messages and for the files it refers to.
struct Origin {
  std::string file;
  std::string path;                                // "users[alice]"
  std::optional<std::filesystem::path> directory;  // what relative references start from; nullopt: files are refused

  [[noreturn]] void fail(std::string_view field, std::string_view message) const;
};

/// A value that a kubeconfig holds either inline (base64, decoded here) or in a file.
struct InlineOrFile {
  std::string field;  // of the file reference; the inline form is called field + "-data"
  std::string content;
  std::string file;

  [[nodiscard]] bool empty() const { return content.empty() && file.empty(); }
};

struct ClusterStanza {
  Origin origin;
  std::string server;
  std::string tls_server_name;
  InlineOrFile authority;
  bool insecure_skip_tls_verify = false;
  std::string proxy_url;
};

struct UserStanza {
  Origin origin;
  InlineOrFile certificate;
  InlineOrFile key;
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  std::optional<ExecPlugin> exec;
  std::string interactive_mode;  // of the exec plugin
  std::string impersonation;     // the field that asks for it
  bool has_auth_provider = false;
};

struct ContextStanza {
  Origin origin;
  std::string cluster;
  std::string user;
  std::string ns;
};

/// The content of kubeconfig files: shapes are checked, but nothing is resolved and no other file is read.
struct Kubeconfig {
  std::string source;  // the file, or the files
  std::string current_context;
  std::map<std::string, ClusterStanza> clusters;
  std::map<std::string, UserStanza> users;
  std::map<std::string, ContextStanza> contexts;

  /// Adds what is not there yet: of two stanzas of one name the earlier file's wins.
  void merge(Kubeconfig later);
};

/// Throws ConfigError.
Kubeconfig read_kubeconfig(std::string_view text, const std::string& source,
                           const std::optional<std::filesystem::path>& directory);

/// Contents of files, by name.
using NamedFiles = std::map<std::string, std::string>;

/// One context with all that it refers to. Throws ConfigError for whatever client-go would refuse.
/// With `files`, certificates and keys are looked up there where there is no directory to read from.
ClientConfig resolve_context(const Kubeconfig& kubeconfig, const std::string& context,
                             const NamedFiles* files = nullptr);

}  // namespace hubferry::kube
