#include "app/doctor/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/hubs/hub_check.hpp"
#include "app/manager/manager_options.hpp"
#include "app/status/migration_view.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

const kube::Resource deployments{"apps", "v1", "deployments", "Deployment", true};
const kube::Resource pods{"", "v1", "pods", "Pod", true};
// A leader renews it every two seconds.
constexpr async::Duration oldest_renewal = std::chrono::minutes{1};
constexpr std::size_t longest_finding = 400;
// Of manifests/base. What else runs in the namespace is none of our business.
constexpr const char* own_label = "app.kubernetes.io/name=hubferry";

bool may_hold_a_secret(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(std::array{"password", "token", "secret"},
                             [&](const char* name) { return word.find(name) != std::string::npos; });
}

/// In the words of a command line: what stands after the `=` of such a flag, or is the next word.
void hide_secret_words(json::array& words) {
  bool is_value = false;
  for (auto& word : words) {
    const std::string text = word.is_string() ? std::string{word.get_string()} : std::string{};
    const auto equals = text.find('=');
    const bool is_hidden_here = may_hold_a_secret(text);
    if (is_value || (is_hidden_here && text.find(' ') != std::string::npos))
      word = "hidden";
    else if (is_hidden_here && equals != std::string::npos)
      word = text.substr(0, equals + 1) + "hidden";
    is_value = !is_value && is_hidden_here && equals == std::string::npos;
  }
}

void hide_values(json::value& value) {
  if (auto* list = value.if_array()) {
    for (auto& item : *list) hide_values(item);
    return;
  }
  auto* object = value.if_object();
  if (object == nullptr) return;
  for (auto& [key, field] : *object) {
    const bool is_environment = key == "env" && field.is_array();
    if (is_environment)
      for (auto& variable : field.get_array())
        if (auto* entry = variable.if_object(); entry != nullptr && entry->contains("value"))
          (*entry)["value"] = "hidden";
    if ((key == "args" || key == "command") && field.is_array()) hide_secret_words(field.get_array());
    // Of probes and hooks.
    if (key == "exec" && field.is_object()) field.get_object().erase("command");
    if (key == "httpGet" && field.is_object()) field.get_object().erase("httpHeaders");
    hide_values(field);
  }
}

std::string yaml_of(const std::vector<kube::Object>& objects) {
  std::string text;
  for (const auto& object : objects) text += "---\n" + to_yaml(in_usual_order(without_secrets(object.json())));
  return text;
}

/// Of leader election: the default, and what the managers' flags name.
std::set<std::string, std::less<>> lease_names(const std::vector<kube::Object>& managers) {
  constexpr std::string_view flag = "--leader-elect-resource-name=";
  std::set<std::string, std::less<>> names{ManagerOptions{}.lease_name};
  for (const auto& manager : managers) {
    const auto* containers = manager.find({"spec", "template", "spec", "containers"});
    if (containers == nullptr || !containers->is_array()) continue;
    for (const auto& container : containers->get_array()) {
      const auto* args = container.is_object() ? container.get_object().if_contains("args") : nullptr;
      if (args == nullptr || !args->is_array()) continue;
      for (const auto& arg : args->get_array())
        if (arg.is_string() && std::string_view{arg.get_string()}.starts_with(flag))
          names.emplace(std::string_view{arg.get_string()}.substr(flag.size()));
    }
  }
  return names;
}

class Doctor {
 public:
  Doctor(ServerClient& client, std::string ns) : client_(client), ns_(std::move(ns)) {}

  async::Awaitable<Diagnosis> run() {
    const auto& build = obs::build_info();
    add_file("version.txt", "hubferry " + std::string{build.version} + " (" + std::string{build.revision} + ")\n");
    co_await read_server();
    co_await read_migrations();
    co_await read_manager();
    co_await read_hubs_of_global();
    std::string summary;
    for (const auto& finding : found_.findings) summary += "- " + finding + "\n";
    add_file("findings.txt", summary.empty() ? "nothing looks wrong\n" : summary);
    co_return std::move(found_);
  }

 private:
  /// Long ones, of migrations of thousands of clusters, are cut: whole they are in `status` and in the bundle.
  void find(const std::string& message) { found_.findings.push_back(fitted(message, longest_finding)); }
  void add_file(std::string path, std::string content) { found_.files[std::move(path)] = std::move(content); }

  /// Lists a kind into a file. What cannot be read is a finding, and empty.
  async::Awaitable<std::vector<kube::Object>> collect(kube::Resource kind, std::string ns, std::string file,
                                                      std::string labels = {}) {
    kube::ListOptions options;
    options.ns = std::move(ns);
    options.label_selector = std::move(labels);
    auto listed = co_await client_.api().list_all(kind, options);
    if (!listed) {
      find("cannot list " + kind.display_name() + ": " + listed.error().describe());
      co_return std::vector<kube::Object>{};
    }
    add_file(std::move(file), yaml_of(*listed));
    co_return std::move(*listed);
  }

  async::Awaitable<> read_server() {
    const auto version = co_await client_.api().get_path("/version");
    if (!version) throw_for(version.error(), client_.api());
    add_file("server.json", to_indented_json(*version) + "\n");
    const kube::Key key{{}, migration::managed_cluster_migrations.display_name()};
    const auto definition = co_await client_.api().get(kube::resources::custom_resource_definitions, key);
    if (definition)
      add_file("crd.yaml", to_yaml(in_usual_order(without_secrets(definition->json()))));
    else
      find("cannot read CustomResourceDefinition " + key.name + ": " + definition.error().describe());
  }

  async::Awaitable<> read_migrations() {
    const auto migrations = co_await collect(migration::managed_cluster_migrations, {}, "migrations.yaml");
    for (const auto& object : migrations) {
      const auto view = view_of(object);
      const auto who = "migration " + kube::to_string(object.key());
      if (view.phase.empty()) find(who + " has not been seen by a manager");
      if (view.is_cleanup_pending() || (view.has_ended() && !view.has_succeeded())) {
        const auto* condition = view.cause();
        if (view.is_cleanup_pending()) condition = view.latest_condition();
        find(who + " is " + view.phase + (condition == nullptr ? "" : ": " + condition->message));
      }
      const auto ledger = co_await client_.api().get(kube::resources::config_maps, object.key());
      // Another ConfigMap of that name is none of our business.
      if (ledger && kube::is_owned_by(*ledger, object.uid()))
        add_file("ledgers/" + std::to_string(++ledgers_) + ".yaml",
                 to_yaml(in_usual_order(without_secrets(ledger->json()))));
    }
    std::string text;
    for (const auto& event : co_await collect(kube::resources::events, {}, "events.yaml"))
      if (event.string_at({"regarding", "kind"}) == migration::managed_cluster_migrations.kind)
        text += std::string{event.string_at({"eventTime"})} + " " + std::string{event.string_at({"type"})} + " " +
                std::string{event.string_at({"regarding", "namespace"})} + "/" +
                std::string{event.string_at({"regarding", "name"})} + " " + std::string{event.string_at({"reason"})} +
                ": " + std::string{event.string_at({"note"})} + "\n";
    // Those of other objects are none of our business.
    found_.files.erase("events.yaml");
    add_file("events.txt", text);
  }

  async::Awaitable<> read_manager() {
    const auto managers = co_await collect(deployments, ns_, "deployments.yaml", own_label);
    for (const auto& deployment : managers) {
      const auto* wanted = deployment.find({"spec", "replicas"});
      const auto* ready = deployment.find({"status", "readyReplicas"});
      if (wanted != nullptr && (ready == nullptr || *ready != *wanted))
        find("Deployment " + kube::to_string(deployment.key()) + " is not ready");
    }
    co_await collect(pods, ns_, "pods.yaml", own_label);
    auto leases = co_await collect(kube::resources::leases, ns_, "leases.yaml");
    std::erase_if(leases, [names = lease_names(managers)](const auto& lease) { return !names.contains(lease.name()); });
    add_file("leases.yaml", yaml_of(leases));
    if (leases.empty()) find("namespace " + ns_ + " has no Lease of a manager: none has ever led there");
    for (const auto& lease : leases) check_renewal(lease);
  }

  void check_renewal(const kube::Object& lease) {
    const auto who = "Lease " + kube::to_string(lease.key());
    // A manager that stops releases it.
    if (lease.string_at({"spec", "holderIdentity"}).empty()) {
      find(who + " has no holder: no manager leads");
      return;
    }
    const auto renewed = lease.string_at({"spec", "renewTime"});
    if (renewed.empty()) return;
    try {
      const auto age = client_.env().clock.wall_now() - async::parse_time(renewed);
      if (age > oldest_renewal) find(who + " was renewed " + async::format_duration(age) + " ago: no manager leads");
    } catch (const std::invalid_argument&) {
      find(who + " has a renewTime that is no time");
    }
  }

  async::Awaitable<> read_hubs_of_global() {
    std::vector<RegisteredHub> hubs;
    std::string problem;
    try {
      hubs = co_await read_hubs(client_.api());
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
    if (!problem.empty()) {
      find("cannot read the hubs: " + problem);
      co_return;
    }
    if (hubs.empty()) find("the global hub knows no hubs");
    json::array checked;
    for (const auto& hub : hubs) {
      const auto checks = co_await check_hub(client_, hub, HubUse{});
      checked.push_back(check_json(hub.name, checks));
      for (const auto& check : checks)
        if (check.result == HubCheck::Result::failed)
          find("hub " + hub.name + ": " + check.name + ": " + check.message);
    }
    add_file("hubs.json", to_indented_json(checked) + "\n");
  }

  ServerClient& client_;
  std::string ns_;
  Diagnosis found_;
  std::size_t ledgers_ = 0;
};

}  // namespace

json::object without_secrets(json::object object) {
  if (auto* metadata = object.if_contains("metadata"); metadata != nullptr && metadata->is_object()) {
    metadata->get_object().erase("managedFields");
    if (auto* annotations = metadata->get_object().if_contains("annotations");
        annotations != nullptr && annotations->is_object())
      annotations->get_object().erase("kubectl.kubernetes.io/last-applied-configuration");
  }
  if (kube::string_at(object, {"kind"}) == "Secret")
    for (const auto* field : {"data", "stringData"}) object.erase(field);
  json::value all(std::move(object));
  hide_values(all);
  return std::move(all.get_object());
}

async::Awaitable<Diagnosis> diagnose(ServerClient& client, std::string ns) {
  Doctor doctor{client, std::move(ns)};
  co_return co_await doctor.run();
}

}  // namespace hubferry::app
