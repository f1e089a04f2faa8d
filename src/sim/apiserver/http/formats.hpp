#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hubferry/async/types.hpp"
#include "sim/apiserver/kinds.hpp"

// The formats besides JSON: tables in responses, protobuf in requests.
namespace hubferry::sim {

/// meta.k8s.io/v1 Table: what `kubectl get` prints.
json::object make_table(const Kind& kind, const std::vector<kube::Object>& objects, async::WallTime now);

inline constexpr std::string_view protobuf_type = "application/vnd.kubernetes.protobuf";

/// Converts a body in Kubernetes' protobuf envelope to JSON. Only the kinds that kubectl sends without a file, for
/// `create` and `auth can-i`; responses are always JSON, which every client accepts.
/// Errors: 415 for an unknown kind or field, bad_request for an invalid body.
Outcome<json::object> decode_protobuf(std::string_view body);

/// The OpenAPI v3 documents that there are: {"paths": {"apis/GROUP/VERSION": {"serverRelativeURL"}}}.
json::object openapi_index(const Kinds& kinds);
/// One of them, "apis/GROUP/VERSION" or "api/v1". The schemas of custom kinds are those of their definitions.
std::optional<json::object> openapi_document(const Kinds& kinds, std::string_view name);

}  // namespace hubferry::sim
