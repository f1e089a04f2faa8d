#include "test_hub.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::klusterlet::test {

namespace {

namespace json = boost::json;

json::object definition_of(const kube::Resource& resource) {
  const json::object schema{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const json::object version{{"name", resource.version},
                             {"served", true},
                             {"storage", true},
                             {"subresources", json::object{{"status", json::object{}}}},
                             {"schema", json::object{{"openAPIV3Schema", schema}}}};
  return {{"metadata", json::object{{"name", resource.plural + "." + resource.group}}},
          {"spec", json::object{{"group", resource.group},
                                {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
                                {"names", json::object{{"plural", resource.plural}, {"kind", resource.kind}}},
                                {"versions", json::array{version}}}}};
}

json::object rule(const char* group, json::array resources, json::array verbs) {
  return {{"apiGroups", json::array{group}}, {"resources", std::move(resources)}, {"verbs", std::move(verbs)}};
}

json::object role(const char* name, json::array rules) {
  return {{"metadata", json::object{{"name", name}}}, {"rules", std::move(rules)}};
}

json::object binding(const char* role_name, const char* subject_kind, const char* subject) {
  return {{"metadata", json::object{{"name", role_name}}},
          {"roleRef",
           json::object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", role_name}}},
          {"subjects", json::array{json::object{
                           {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", subject_kind}, {"name", subject}}}}};
}

bool has_condition(const kube::Object& object, std::string_view type) {
  return kube::find_condition(object, type) != nullptr;
}

/// Calls `react` for every object of a kind, now and after each change.
template <typename React>
Awaitable<> for_each_change(kube::Api& api, const kube::Resource& resource, async::Clock& clock, React react) {
  while (true) {
    kube::ListOptions all;
    auto page = co_await api.list(resource, all, kube::object_decoder());
    if (!page) {
      co_await clock.sleep_for(std::chrono::seconds{1});
      continue;
    }
    for (const auto& item : page->items) co_await react(*static_cast<const kube::Object*>(item.object.get()));
    kube::WatchOptions options;
    options.resource_version = page->resource_version;
    options.timeout = std::chrono::hours{24};
    options.bookmarks = false;
    auto stream = co_await api.watch(resource, options, kube::object_decoder());
    if (!stream) continue;
    while (true) {
      auto batch = co_await (*stream)->next();
      if (!batch || batch->empty()) break;
      for (const auto& event : *batch)
        if (event.type == kube::WatchEventType::added || event.type == kube::WatchEventType::modified)
          co_await react(*static_cast<const kube::Object*>(event.decoded.object.get()));
    }
  }
}

}  // namespace

namespace {

/// A client with a certificate: rejected when that has expired by the hub's clock.
class CertificateApi final : public kube::Api {
 public:
  CertificateApi(std::unique_ptr<kube::Api> inner, WallTime expires, async::Clock& clock)
      : inner_(std::move(inner)), expires_(expires), clock_(clock) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    if (is_expired()) co_return rejection();
    co_return co_await inner_->call(std::move(request));
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    if (is_expired()) co_return rejection();
    co_return co_await inner_->list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    if (is_expired()) co_return rejection();
    co_return co_await inner_->watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override {
    if (is_expired()) co_return rejection();
    co_return co_await inner_->get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  [[nodiscard]] bool is_expired() const { return clock_.wall_now() >= expires_; }
  static kube::Error rejection() { return kube::error_from_status(401, {}); }

  std::unique_ptr<kube::Api> inner_;
  WallTime expires_;
  async::Clock& clock_;
};

}  // namespace

Hub::Hub(std::string name, kube::Env env)
    : server(
          [&] {
            sim::Options options;
            options.name = std::move(name);
            return options;
          }(),
          env),
      env_(env),
      api_(server.api()) {}

Awaitable<> Hub::must(Awaitable<kube::Result<kube::Object>> call) {
  auto result = co_await std::move(call);
  EXPECT_TRUE(result) << result.error();
}

Awaitable<> Hub::set_up() {
  using namespace kube::resources;
  for (const auto* kind : {&ocm::managed_clusters, &ocm::manifest_works})
    co_await must(api_.create(custom_resource_definitions, definition_of(*kind)));
  const char* cluster_group = "cluster.open-cluster-management.io";
  json::array bootstrap_rules{
      rule(cluster_group, {"managedclusters"}, {"create", "get"}),
      rule("certificates.k8s.io", {"certificatesigningrequests"}, {"create", "get", "list", "watch"})};
  co_await must(api_.create(cluster_roles, role("bootstrap", std::move(bootstrap_rules))));
  co_await must(api_.create(cluster_role_bindings, binding("bootstrap", "User", "bootstrap")));
  json::array member_rules{rule("*", {"*"}, {"*"})};
  co_await must(api_.create(cluster_roles, role("member", std::move(member_rules))));
  co_await must(api_.create(cluster_role_bindings,
                            binding("member", "Group", "system:open-cluster-management:managed-clusters")));
}

BootstrapConfig Hub::bootstrap(const std::string& stanza, const std::string& token) const {
  kube::ClientConfig config;
  config.name = "bootstrap";
  config.server = url();
  config.cluster_name = stanza;
  config.token = token;
  return {name() + "-bootstrap", obs::Secret{kube::to_kubeconfig(config)}, std::nullopt};
}

std::shared_ptr<kube::Api> Hub::connect(const kube::ClientConfig& config) {
  if (config.client_certificate_pem.empty()) return server.api_as({config.token, {}, {}});
  const auto chain = read_certificates(config.client_certificate_pem);
  if (chain.empty()) throw kube::ConfigError("the certificate cannot be parsed");
  certificates_seen.push_back(chain.front().common_name);
  auto api = server.api_as({chain.front().common_name, chain.front().organizations, {}});
  return std::make_shared<CertificateApi>(std::move(api), chain.front().not_after, env_.clock);
}

Awaitable<> Hub::react() {
  auto all = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(react_to_clusters());
    co_await react_to_requests();
  };
  co_await async::with_scope(all);
}

Awaitable<> Hub::react_to_clusters() {
  auto react = [this](kube::Object cluster) { return admit(std::move(cluster)); };
  co_await for_each_change(api_, ocm::managed_clusters, env_.clock, react);
}

Awaitable<> Hub::react_to_requests() {
  auto react = [this](kube::Object request) { return approve(std::move(request)); };
  co_await for_each_change(api_, kube::resources::certificate_signing_requests, env_.clock, react);
}

Awaitable<> Hub::admit(kube::Object cluster) {
  const std::string name{cluster.name()};
  const auto* accepted = cluster.find({"spec", "hubAcceptsClient"});
  const bool is_accepted = accepted != nullptr && accepted->is_bool() && accepted->get_bool();
  if (!is_accepted && accepts && cluster.annotation(ocm::names::accepted_on_annotation).empty()) {
    json::object patch{
        {"metadata", json::object{{"annotations", json::object{{ocm::names::accepted_on_annotation, "now"}}}}},
        {"spec", json::object{{"hubAcceptsClient", true}}}};
    co_await must(api_.merge_patch(ocm::managed_clusters, cluster.key(), std::move(patch)));
    co_return;
  }
  if (!is_accepted || has_condition(cluster, ocm::names::accepted)) co_return;
  json::object ns{{"metadata", json::object{{"name", name}}}};
  co_await api_.create(kube::resources::namespaces, std::move(ns));
  json::object lease{{"metadata", json::object{{"name", ocm::names::cluster_lease}, {"namespace", name}}},
                     {"spec", json::object{{"renewTime", async::format_micro_time(env_.clock.wall_now())}}}};
  co_await api_.create(kube::resources::leases, std::move(lease));
  const kube::Mutation accept = [this](json::object& object) {
    auto& status = object["status"];
    if (!status.is_object()) status = json::object{};
    const kube::Condition condition{.type = ocm::names::accepted,
                                    .status = kube::ConditionStatus::yes,
                                    .reason = "HubClusterAdminAccepted",
                                    .message = "accepted"};
    return kube::set_condition(status.get_object(), condition, env_.clock.wall_now());
  };
  kube::EditOptions options;
  options.subresource = "status";
  co_await must(kube::edit(api_, ocm::managed_clusters, cluster.key(), accept, options));
}

Awaitable<> Hub::approve(kube::Object request) {
  if (!approves || has_condition(request, "Approved") || has_condition(request, "Denied")) co_return;
  kube::Condition approved{
      .type = "Approved", .status = kube::ConditionStatus::yes, .reason = "Test", .message = "approved"};
  co_await answer(request.key(), std::move(approved));
}

Awaitable<> Hub::deny(kube::Object request, std::string why) {
  kube::Condition denied{
      .type = "Denied", .status = kube::ConditionStatus::yes, .reason = "Test", .message = std::move(why)};
  co_await answer(request.key(), std::move(denied));
}

Awaitable<> Hub::answer(kube::Key request, kube::Condition answer) {
  const kube::Mutation put = [&](json::object& object) {
    auto& status = object["status"];
    if (!status.is_object()) status = json::object{};
    return kube::set_condition(status.get_object(), answer, env_.clock.wall_now());
  };
  kube::EditOptions options;
  options.subresource = "approval";
  co_await must(kube::edit(api_, kube::resources::certificate_signing_requests, request, put, options));
}

Awaitable<> Hub::approve_all() {
  approves = true;
  for (const auto& request : requests()) co_await approve(request);
}

Awaitable<> Hub::accept(std::string cluster, bool accepts_it) {
  json::object patch{{"spec", json::object{{"hubAcceptsClient", accepts_it}}}};
  const kube::Key key{{}, std::move(cluster)};
  co_await must(api_.merge_patch(ocm::managed_clusters, key, std::move(patch)));
}

Awaitable<> Hub::set_lease_duration(std::string cluster, int seconds) {
  json::object patch{{"spec", json::object{{"leaseDurationSeconds", seconds}}}};
  const kube::Key key{{}, std::move(cluster)};
  co_await must(api_.merge_patch(ocm::managed_clusters, key, std::move(patch)));
}

std::optional<kube::Object> Hub::cluster(const std::string& name) const {
  return server.object(ocm::managed_clusters, {{}, name});
}

std::string Hub::condition(const std::string& cluster_name, const char* type) const {
  const auto found = cluster(cluster_name);
  if (!found) return {};
  const auto* condition = kube::find_condition(*found, type);
  return condition == nullptr ? std::string{} : std::string{kube::string_at(*condition, {"status"})};
}

bool Hub::is_available(const std::string& cluster) const {
  return condition(cluster, ocm::names::available) == "True";
}

std::string Hub::renew_time(const std::string& cluster) const {
  const auto lease = server.object(kube::resources::leases, {cluster, ocm::names::cluster_lease});
  return lease ? std::string{lease->string_at({"spec", "renewTime"})} : std::string{};
}

std::vector<kube::Object> Hub::requests() const {
  return server.objects(kube::resources::certificate_signing_requests);
}

std::size_t Hub::count(std::string_view verb, std::string_view resource) const {
  std::size_t found = 0;
  for (const auto& request : server.requests())
    if (request.verb == verb && request.resource.starts_with(resource)) ++found;
  return found;
}

}  // namespace hubferry::klusterlet::test
