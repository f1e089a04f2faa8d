#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "hubferry/kube/resource.hpp"

namespace hubferry::sim {

/// What real clients have sent to this server, and the events of their watches, as kube-apiserver counts them on
/// /metrics. Requests of the simulated controllers and agents are not among them: they use no socket.
class RequestCounts {
 public:
  /// `verb`: of RBAC, "list" or "create". A watch counts when it is opened.
  void add_request(std::string_view verb, const kube::Resource& resource, std::string_view subresource, int code);
  /// The number of events of this kind so far, to be incremented. Valid as long as this object.
  std::uint64_t& events_of(const kube::Resource& resource);

  /// In the text format of Prometheus.
  [[nodiscard]] std::string text() const;

 private:
  /// Verb, group, version, plural, subresource, code.
  using Request = std::tuple<std::string, std::string, std::string, std::string, std::string, int>;
  std::map<Request, std::uint64_t> requests_;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> events_;  // group, version, kind
};

}  // namespace hubferry::sim
