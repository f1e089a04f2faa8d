#include "sim/apiserver/http/request_counts.hpp"

#include <array>
#include <utility>

namespace hubferry::sim {

namespace {

/// The verb as kube-apiserver counts it.
std::string counted_verb(std::string_view verb) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> names{
      {{"get", "GET"},
       {"list", "LIST"},
       {"watch", "WATCH"},
       {"create", "POST"},
       {"update", "PUT"},
       {"patch", "PATCH"},
       {"apply", "APPLY"},
       {"delete", "DELETE"},
       {"deletecollection", "DELETECOLLECTION"}}};
  for (const auto& [rbac, counted] : names)
    if (rbac == verb) return std::string{counted};
  return std::string{verb};
}

}  // namespace

void RequestCounts::add_request(std::string_view verb, const kube::Resource& resource, std::string_view subresource,
                                int code) {
  ++requests_[{counted_verb(verb), resource.group, resource.version, resource.plural, std::string{subresource}, code}];
}

std::uint64_t& RequestCounts::events_of(const kube::Resource& resource) {
  return events_[{resource.group, resource.version, resource.kind}];
}

std::string RequestCounts::text() const {
  std::string text =
      "# HELP apiserver_request_total Requests over HTTP, by verb, resource and status code.\n"
      "# TYPE apiserver_request_total counter\n";
  for (const auto& [of, count] : requests_) {
    const auto& [verb, group, version, plural, subresource, code] = of;
    text += "apiserver_request_total{code=\"" + std::to_string(code) + "\",group=\"" + group + "\",resource=\"" +
            plural + "\",subresource=\"" + subresource + "\",verb=\"" + verb + "\",version=\"" + version + "\"} " +
            std::to_string(count) + "\n";
  }
  text +=
      "# HELP apiserver_watch_events_total Events sent to watches over HTTP, by kind.\n"
      "# TYPE apiserver_watch_events_total counter\n";
  for (const auto& [of, count] : events_) {
    const auto& [group, version, kind] = of;
    text += "apiserver_watch_events_total{group=\"" + group + "\",kind=\"" + kind + "\",version=\"" + version + "\"} " +
            std::to_string(count) + "\n";
  }
  return text;
}

}  // namespace hubferry::sim
