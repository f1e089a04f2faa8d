#include "hubagent/known_clusters.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace hubferry::hubagent {

namespace {

/// Those of some thousand clusters. One that finds no room is read again.
constexpr std::size_t most_bytes = std::size_t{16} << 20U;

bool is_kept(const kube::Object& cluster) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == true && !cluster.is_being_deleted();
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
  if (!is_kept(cluster)) return;
  auto text = kube::json::serialize(cluster.json());
  if (bytes_ + text.size() > most_bytes) return;
  bytes_ += text.size();
  clusters_.emplace(name, Known{std::string{cluster.resource_version()}, std::move(text)});
}

std::optional<kube::Object> KnownClusters::take(const std::string& cluster) {
  auto known = clusters_.extract(cluster);
  if (!known) return std::nullopt;
  bytes_ -= known.mapped().text.size();
  const auto seen = watched_.get({{}, cluster});
  if (seen == nullptr || seen->resource_version() != known.mapped().resource_version) return std::nullopt;
  return kube::Object{kube::json::parse(known.mapped().text).as_object()};
}

}  // namespace hubferry::hubagent
