#include "app/status/find_migration.hpp"

#include <stdexcept>

#include "app/cli/flag_values.hpp"
#include "app/cli/server_client.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::app {

const kube::Object& select_migration(const std::vector<kube::Object>& migrations, const std::string& ns,
                                     const std::string& name) {
  std::vector<const kube::Object*> found;
  std::vector<std::string> names;
  std::string namespaces;
  for (const auto& migration : migrations) {
    names.emplace_back(migration.name());
    if (migration.name() != name) continue;
    namespaces += (namespaces.empty() ? "" : ", ") + std::string{migration.ns()};
    found.push_back(&migration);
  }
  if (found.empty()) {
    const auto meant = nearest(name, names);
    throw std::runtime_error("no migration '" + name + "'" + (ns.empty() ? " found" : " in namespace " + ns) +
                             (meant ? " (did you mean " + *meant + "?)" : ""));
  }
  if (found.size() > 1)
    throw std::runtime_error("several migrations are named '" + name + "', in these namespaces: " + namespaces +
                             "; select one with --namespace");
  return *found.front();
}

void throw_for_list(const kube::Error& error, const kube::Api& api, const std::string& ns) {
  if (error.kind == kube::ErrorKind::forbidden && ns.empty())
    throw std::runtime_error("API server " + std::string{api.name()} + ": " + error.describe() +
                             "; select a namespace that you may read with --namespace");
  throw_for(error, api);
}

async::Awaitable<kube::Object> find_migration(kube::Api& api, std::string ns, std::string name) {
  kube::ListOptions list;
  list.ns = ns;
  const auto answer = co_await api.list_all(migration::managed_cluster_migrations, list);
  if (!answer) throw_for_list(answer.error(), api, ns);
  co_return select_migration(*answer, ns, name);
}

}  // namespace hubferry::app
