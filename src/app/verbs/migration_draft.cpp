#include "app/verbs/migration_draft.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <tuple>

#include "app/cli/terminal.hpp"
#include "app/plan/plan.hpp"
#include "app/plan/plan_run.hpp"
#include "hubferry/async/clock.hpp"
#include "hubferry/kube/names.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

/// FNV-1a: stable across versions and machines, as a name must be.
std::string short_hash(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  constexpr const char* digits = "0123456789abcdef";
  std::string result;
  for (int shift = 28; shift >= 0; shift -= 4) result += digits[(hash >> shift) & 0xFU];
  return result;
}

/// Short enough that two of them make a name, and valid in the middle of one.
std::string name_part(const std::string& hub) {
  constexpr std::size_t longest = 100;
  std::string part = hub.substr(0, longest);
  while (!part.empty() && (part.back() == '-' || part.back() == '.')) part.pop_back();
  return part;
}

json::object spec_json(const migration::MigrationSpec& spec) {
  json::object result{{"from", spec.from}, {"to", spec.to}};
  if (spec.clusters) result["includedManagedClusters"] = json::array(spec.clusters->begin(), spec.clusters->end());
  if (spec.placement) result["includedManagedClustersPlacementRef"] = *spec.placement;
  if (spec.stage_timeout)
    result["supportedConfigs"] = json::object{{"stageTimeout", async::format_duration(*spec.stage_timeout)}};
  if (spec.time_to_live)
    result["ttlSecondsAfterFinished"] = std::chrono::duration_cast<std::chrono::seconds>(*spec.time_to_live).count();
  return result;
}

}  // namespace

MigrationDraft draft_of(kube::Key key, const migration::MigrationSpec& spec) {
  const auto& kind = migration::managed_cluster_migrations;
  json::object object{{"apiVersion", kind.api_version()}, {"kind", kind.kind}, {"spec", spec_json(spec)}};
  return draft_from(std::move(key), object);
}

MigrationDraft draft_from(kube::Key key, const json::object& object) {
  MigrationDraft draft{std::move(key), plan_spec_of(object), object};
  draft.object.erase("status");
  auto& metadata = draft.object["metadata"];
  if (!metadata.is_object()) metadata = json::object{};
  auto& fields = metadata.get_object();
  if (draft.key.ns.empty()) draft.key.ns = kube::string_at(fields, {"namespace"});
  if (draft.key.ns.empty()) draft.key.ns = default_migration_namespace;
  if (draft.key.name.empty()) draft.key.name = kube::string_at(fields, {"name"});
  if (draft.key.name.empty()) draft.key.name = default_migration_name(draft.spec);
  if (!kube::is_dns_subdomain(draft.key.name) || !kube::is_dns_label(draft.key.ns))
    throw std::runtime_error("its name or namespace is not valid in Kubernetes: " +
                             json::serialize(json::value(kube::to_string(draft.key))));
  fields["namespace"] = draft.key.ns;
  fields["name"] = draft.key.name;
  // What an object has that was read from a server: with it nothing could be created, or it would be another's.
  for (const auto* field :
       {"uid", "resourceVersion", "generateName", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "generation", "selfLink", "managedFields", "finalizers", "ownerReferences"})
    fields.erase(field);
  // What a person decided about an earlier migration is not for this one.
  if (auto* annotations = fields.if_contains("annotations"); annotations != nullptr && annotations->is_object())
    for (const auto* decision : {migration::names::request_annotation, migration::names::leave_annotation})
      annotations->get_object().erase(decision);
  return draft;
}

MigrationDraft draft_from_file(kube::Key key, const std::string& file) {
  const auto object = read_only_object(file);
  try {
    return draft_from(std::move(key), object);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(shown_name(file) + ": " + error.what());
  }
}

std::string default_migration_name(const migration::MigrationSpec& spec) {
  std::string content = spec.from + "\n" + spec.to + "\n" + spec.placement.value_or("") + "\n";
  auto clusters = spec.clusters.value_or(hubagent::ClusterNames{});
  std::ranges::sort(clusters);
  for (const auto& cluster : clusters) content += cluster + "\n";
  return name_part(spec.from) + "-to-" + name_part(spec.to) + "-" + short_hash(content);
}

std::string retry_name(const std::string& name) {
  const std::string suffix = "-retry";
  const auto at = name.rfind(suffix);
  if (at == std::string::npos || at == 0) return name + suffix;
  const auto base = name.substr(0, at + suffix.size());
  if (base.size() == name.size()) return base + "-2";
  const auto number = std::string_view{name}.substr(base.size());
  std::uint32_t count = 0;
  if (!number.starts_with('-')) return name + suffix;
  const auto digits = number.substr(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || end != digits.data() + digits.size() || count < 2 || count > 1'000'000)
    return name + suffix;
  return base + "-" + std::to_string(count + 1);
}

bool is_same_migration(const migration::MigrationSpec& one, const migration::MigrationSpec& other) {
  const auto content = [](const migration::MigrationSpec& spec) {
    return std::tie(spec.from, spec.to, spec.clusters, spec.placement, spec.stage_timeout);
  };
  return content(one) == content(other);
}

std::string describe(const migration::MigrationSpec& spec) {
  const auto what = spec.placement ? "the clusters of Placement " + *spec.placement
                                   : plural(spec.clusters ? spec.clusters->size() : 0, "cluster");
  return what + " from " + spec.from + " to " + spec.to;
}

}  // namespace hubferry::app
