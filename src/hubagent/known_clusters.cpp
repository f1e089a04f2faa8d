#include "hubagent/known_clusters.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Those of some thousand clusters. One that finds no room is read again.
constexpr std::size_t most_bytes = std::size_t{16} << 20U;

/// Of a few hundred bytes each.
constexpr std::size_t most_denied = 5'000;

bool is_kept(const kube::Object& cluster, bool accepted) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == accepted && !cluster.is_being_deleted();
}

}  // namespace

void KnownClusters::forget(const std::string& cluster) {
  const auto known = clusters_.find(cluster);
  if (known == clusters_.end()) return;
  bytes_ -= known->second.text.size();
  clusters_.erase(known);
}

void KnownClusters::remember(const kube::Object& cluster) {
  const std::string name{cluster.name()};
  forget(name);
  if (!is_kept(cluster, true)) return;
  auto text = kube::json::serialize(cluster.json());
  if (bytes_ + text.size() > most_bytes) return;
  bytes_ += text.size();
  clusters_.emplace(name, Known{std::string{cluster.resource_version()}, std::move(text)});
}

bool KnownClusters::is_to_be_copied(const std::string& cluster) const {
  const auto seen = watched_.get({{}, cluster});
  return clusters_.contains(cluster) && seen != nullptr && seen->hub_accepts_client();
}

std::optional<kube::Object> KnownClusters::take(const std::string& cluster) {
  auto known = clusters_.extract(cluster);
  if (!known) return std::nullopt;
  bytes_ -= known.mapped().text.size();
  const auto seen = watched_.get({{}, cluster});
  if (seen == nullptr || seen->resource_version() != known.mapped().resource_version) return std::nullopt;
  return kube::Object{kube::json::parse(known.mapped().text).as_object()};
}

void KnownClusters::remember_denied(const kube::Object& cluster) {
  const std::string name{cluster.name()};
  denied_.erase(name);
  if (!is_kept(cluster, false) || denied_.size() >= most_denied) return;
  kube::json::object annotations{
      {ocm::names::migrating_annotation, cluster.annotation(ocm::names::migrating_annotation)}};
  kube::json::object metadata{{"name", name},
                              {"uid", cluster.uid()},
                              {"resourceVersion", cluster.resource_version()},
                              {"annotations", std::move(annotations)}};
  kube::json::object spec{{"hubAcceptsClient", false}};
  kube::json::object kept{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  denied_.emplace(name, kube::Object{std::move(kept)});
}

std::optional<kube::Object> KnownClusters::take_denied(const std::string& cluster) {
  auto known = denied_.extract(cluster);
  return known ? std::optional<kube::Object>{std::move(known.mapped())} : std::nullopt;
}

}  // namespace hubferry::hubagent
