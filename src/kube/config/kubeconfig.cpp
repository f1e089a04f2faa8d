#include "kube/config/kubeconfig.hpp"

#include "hubferry/kube/read_file.hpp"
#include "hubferry/kube/yaml_section.hpp"

namespace hubferry::kube {

namespace {

InlineOrFile inline_or_file(const YamlSection& section, const std::string& field) {
  return {field, section.bytes(field + "-data"), section.text(field)};
}

ClusterStanza read_cluster(const YamlSection& section, Origin origin) {
  return {.origin = std::move(origin),
          .server = section.text("server"),
          .tls_server_name = section.text("tls-server-name"),
          .authority = inline_or_file(section, "certificate-authority"),
          .insecure_skip_tls_verify = section.flag("insecure-skip-tls-verify"),
          .proxy_url = section.text("proxy-url")};
}

ExecPlugin read_exec(const YamlSection& section) {
  ExecPlugin plugin{.api_version = section.text("apiVersion"),
                    .command = section.text("command"),
                    .arguments = section.texts("args"),
                    .environment = {},
                    .install_hint = section.text("installHint"),
                    .provide_cluster_info = section.flag("provideClusterInfo"),
                    .interaction = ExecPlugin::Interaction::never,
                    .person = ExecPlugin::Person::none};
  for (const auto& variable : section.sections("env")) {
    const auto name = variable.text("name");
    if (name.empty()) variable.fail("name", "an environment variable needs a name");
    if (name.find_first_of(std::string_view{"=\0", 2}) != std::string::npos)
      variable.fail("name", "holds a character that the name of an environment variable cannot have");
    plugin.environment[name] = variable.text("value");
  }
  return plugin;
}

UserStanza read_user(const YamlSection& section, Origin origin) {
  UserStanza user{.origin = std::move(origin),
                  .certificate = inline_or_file(section, "client-certificate"),
                  .key = inline_or_file(section, "client-key"),
                  .token = trimmed(section.text("token")),
                  .token_file = section.text("tokenFile"),
                  .username = section.text("username"),
                  .password = section.text("password"),
                  .exec = std::nullopt,
                  .interactive_mode = {},
                  .impersonation = {},
                  .has_auth_provider = section.has("auth-provider")};
  if (section.has("exec")) {
    const auto exec = section.section("exec");
    user.exec = read_exec(exec);
    user.interactive_mode = exec.text("interactiveMode");
  }
  for (const auto* field : {"as", "as-uid", "as-groups", "as-user-extra"})
    if (user.impersonation.empty() && section.has(field)) user.impersonation = field;
  return user;
}

ContextStanza read_context(const YamlSection& section, Origin origin) {
  return {.origin = std::move(origin),
          .cluster = section.text("cluster"),
          .user = section.text("user"),
          .ns = section.text("namespace")};
}

/// Reads a list of {name, <kind>} entries, such as `users` with its {name, user}.
template <typename Stanza, typename Read>
std::map<std::string, Stanza> read_stanzas(const YamlSection& top, const std::string& list, const std::string& kind,
                                           const std::optional<std::filesystem::path>& directory, Read read) {
  std::map<std::string, Stanza> stanzas;
  for (const auto& entry : top.sections(list)) {
    const auto name = entry.text("name");
    const auto path = list + "[" + name + "]";
    const auto section = entry.section(kind).renamed(path);
    const bool is_new = stanzas.emplace(name, read(section, Origin{top.file(), path, directory})).second;
    if (!is_new) section.fail({}, "there are two of that name");
  }
  return stanzas;
}

}  // namespace

void Origin::fail(std::string_view field, std::string_view message) const {
  fail_config(file, path, field, message);
}

void Kubeconfig::merge(Kubeconfig later) {
  source += (source.empty() ? "" : ":") + later.source;
  if (current_context.empty()) current_context = std::move(later.current_context);
  clusters.merge(later.clusters);
  users.merge(later.users);
  contexts.merge(later.contexts);
}

Kubeconfig read_kubeconfig(std::string_view text, const std::string& source,
                           const std::optional<std::filesystem::path>& directory) {
  const auto top = parse_yaml(text, source);
  if (const auto kind = top.text("kind"); !kind.empty() && kind != "Config")
    top.fail("kind", "a kubeconfig is of kind Config");
  if (const auto version = top.text("apiVersion"); !version.empty() && version != "v1")
    top.fail("apiVersion", "only v1 is known");
  return {.source = source,
          .current_context = top.text("current-context"),
          .clusters = read_stanzas<ClusterStanza>(top, "clusters", "cluster", directory, read_cluster),
          .users = read_stanzas<UserStanza>(top, "users", "user", directory, read_user),
          .contexts = read_stanzas<ContextStanza>(top, "contexts", "context", directory, read_context)};
}

}  // namespace hubferry::kube
