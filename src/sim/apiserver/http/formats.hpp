#pragma once

#include <string_view>
#include <vector>

#include "hubferry/async/types.hpp"
#include "sim/apiserver/kinds.hpp"

// The formats beside JSON: tables out, protobuf in.
namespace hubferry::sim {

/// meta.k8s.io/v1 Table: what `kubectl get` prints.
json::object make_table(const Kind& kind, const std::vector<kube::Object>& objects, async::WallTime now);

inline constexpr std::string_view protobuf_type = "application/vnd.kubernetes.protobuf";

/// A body in Kubernetes' protobuf envelope, as the JSON that says the same. Only the kinds that kubectl sends
/// without a file, for `create` and `auth can-i`: answers are always JSON, which every client reads too.
/// Errors: 415 for another kind or a field that is not known here, bad_request for what is no such body.
Outcome<json::object> decode_protobuf(std::string_view body);

}  // namespace hubferry::sim
