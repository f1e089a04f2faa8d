#include "klusterlet/sent_list.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/object.hpp"

namespace hubferry::klusterlet {

namespace {

namespace json = boost::json;

/// What tells one hub from another; empty if it cannot be parsed.
std::string hub_of(const BootstrapConfig& bootstrap) {
  if (why_unparsable(bootstrap)) return {};
  const auto config = bootstrap.parse();
  return config.server + " " + config.cluster_name;
}

std::string digest_of_bootstrap(const BootstrapConfig& bootstrap) {
  return digest_of(bootstrap.kubeconfig.reveal() + bootstrap.authority);
}

}  // namespace

SentList make_sent_list(std::vector<BootstrapConfig> hubs, std::optional<Duration> timeout,
                        const std::vector<BootstrapConfig>& configured) {
  SentList list{.hubs = std::move(hubs), .timeout = timeout, .configured = {}};
  for (auto& hub : list.hubs) {
    if (!hub.base || why_unparsable(hub)) continue;
    // One of the administrator's files: what it refers to is kept in the text.
    hub.kubeconfig = obs::Secret{kube::to_kubeconfig(hub.parse())};
    hub.base.reset();
    hub.authority.clear();
  }
  for (const auto& file : configured)
    if (auto hub = hub_of(file); !hub.empty()) list.configured.emplace(std::move(hub), digest_of_bootstrap(file));
  return list;
}

std::vector<BootstrapConfig> list_in_effect(const std::optional<SentList>& sent,
                                            const std::vector<BootstrapConfig>& configured) {
  if (!sent) return configured;
  std::map<std::string, const BootstrapConfig*> files;
  for (const auto& file : configured) {
    auto hub = hub_of(file);
    if (hub.empty()) continue;
    if (!sent->configured.contains(hub)) return configured;
    files.emplace(std::move(hub), &file);
  }
  auto list = sent->hubs;
  for (auto& hub : list) {
    const auto file = files.find(hub_of(hub));
    if (file == files.end() || sent->configured.at(file->first) == digest_of_bootstrap(*file->second)) continue;
    hub.kubeconfig = file->second->kubeconfig;
    hub.base = file->second->base;
    hub.authority = file->second->authority;
  }
  return list;
}

obs::Secret to_text(const SentList& list) {
  json::array hubs;
  for (const auto& hub : list.hubs)
    hubs.push_back(json::object{
        {"name", hub.name}, {"kubeconfig", hub.kubeconfig.reveal()}, {"listed", hub.sent}, {"fallback", hub.fallback}});
  json::object configured;
  for (const auto& [hub, digest] : list.configured) configured[hub] = digest;
  json::object text{{"hubs", std::move(hubs)}, {"configured", std::move(configured)}};
  if (list.timeout) text["timeoutSeconds"] = std::chrono::duration_cast<std::chrono::seconds>(*list.timeout).count();
  return obs::Secret{json::serialize(text)};
}

std::optional<SentList> parse_sent_list(const std::string& text) {
  boost::system::error_code failed;
  const auto parsed = json::parse(text, failed);
  if (failed || !parsed.is_object()) return std::nullopt;
  const auto* hubs = kube::find(parsed, {"hubs"});
  const auto* configured = kube::find(parsed, {"configured"});
  if (hubs == nullptr || !hubs->is_array() || configured == nullptr || !configured->is_object()) return std::nullopt;
  SentList list;
  for (const auto& entry : hubs->get_array()) {
    if (!entry.is_object()) return std::nullopt;
    const auto& fields = entry.get_object();
    const auto* listed = fields.if_contains("listed");
    const auto* fallback = fields.if_contains("fallback");
    BootstrapConfig hub{.name = std::string{kube::string_at(fields, {"name"})},
                        .kubeconfig = obs::Secret{std::string{kube::string_at(fields, {"kubeconfig"})}},
                        .base = std::nullopt};
    hub.sent = listed == nullptr || !listed->is_bool() || listed->get_bool();
    hub.fallback = fallback != nullptr && fallback->is_bool() && fallback->get_bool();
    list.hubs.push_back(std::move(hub));
  }
  for (const auto& [hub, digest] : configured->get_object())
    if (digest.is_string()) list.configured.emplace(hub, digest.get_string());
  const auto* seconds = kube::find(parsed, {"timeoutSeconds"});
  if (seconds != nullptr && seconds->is_int64()) list.timeout = std::chrono::seconds{seconds->get_int64()};
  if (list.hubs.empty()) return std::nullopt;
  return list;
}

}  // namespace hubferry::klusterlet
