#include "klusterlet/client_configs.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

#include "hubferry/kube/base64.hpp"

namespace hubferry::klusterlet {

bool add_client_configs(kube::json::object& cluster, const std::vector<ExternalServer>& servers) {
  using kube::json::array;
  using kube::json::object;
  if (servers.empty()) return false;
  auto& spec = cluster["spec"];
  if (!spec.is_object()) spec = object{};
  auto& list = spec.get_object()["managedClusterClientConfigs"];
  if (!list.is_array()) list = array{};
  bool changed = false;
  for (const auto& server : servers) {
    const auto is_it = [&](const kube::json::value& entry) {
      return entry.is_object() && kube::string_at(entry.get_object(), {"url"}) == server.url;
    };
    if (std::ranges::any_of(list.get_array(), is_it)) continue;
    object entry{{"url", server.url}};
    if (!server.ca_pem.empty()) entry["caBundle"] = kube::encode_base64(server.ca_pem);
    list.get_array().push_back(std::move(entry));
    changed = true;
  }
  return changed;
}

}  // namespace hubferry::klusterlet
