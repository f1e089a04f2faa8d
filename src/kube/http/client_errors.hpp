#pragma once

#include <string>

#include "hubferry/kube/error.hpp"
#include "kube/http/connection.hpp"
#include "kube/http/wire_request.hpp"

namespace hubferry::kube::http {

/// The error with a message that begins with the request: "GET /api/v1/nodes: …".
Error about(const WireRequest& request, Error error);
Error about(const WireRequest& request, ErrorKind kind, std::string message);

/// What an answer other than success means.
Error error_from_answer(const WireRequest& request, const Answer& answer);
/// What it means that no (whole) answer came. Only a write can be ambiguous.
Error error_from_loss(const WireRequest& request, const Loss& loss);

}  // namespace hubferry::kube::http
