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

std::optional<kube::Object> KnownClusters::find(const std::string& cluster) const {
  const auto known = clusters_.find(cluster);
  const auto seen = watched_.get({{}, cluster});
  if (known == clusters_.end() || seen == nullptr || seen->resource_version() != known->second.resource_version)
    return std::nullopt;
  return kube::Object{kube::json::parse(known->second.text).as_object()};
}

std::optional<kube::Object> KnownClusters::take(const std::string& cluster) {
  auto found = find(cluster);
  forget(cluster);
  return found;
}

}  // namespace hubferry::hubagent
