#include "kube/http/client_errors.hpp"

namespace hubferry::kube::http {

Error about(const WireRequest& request, Error error) {
  error.message = request.display() + (error.message.empty() ? "" : ": " + error.message);
  return error;
}

Error about(const WireRequest& request, ErrorKind kind, std::string message) {
  return about(request, Error{kind, 0, {}, std::move(message), std::nullopt});
}

Error error_from_answer(const WireRequest& request, const Answer& answer) {
  Error error = error_from_status(answer.status, answer.body);
  if (!error.retry_after) error.retry_after = answer.retry_after;
  if (!request.read_only) error = as_answer_to_write(std::move(error));
  return about(request, std::move(error));
}

Error error_from_loss(const WireRequest& request, const Loss& loss) {
  const bool sent = loss.stage == Stage::waiting || loss.stage == Stage::answering;
  if (sent && !request.read_only)
    return about(request, ErrorKind::ambiguous, loss.why + "; it was sent, and may or may not have taken effect");
  return about(request, loss.garbage ? ErrorKind::bad_response : ErrorKind::unreachable, loss.why);
}

}  // namespace hubferry::kube::http
