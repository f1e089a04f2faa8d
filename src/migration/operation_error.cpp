#include "hubferry/migration/operation_error.hpp"

#include "hubferry/async/clock.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::migration {

OperationError::OperationError(kube::Error cause) : OperationError(hubagent::Error{std::move(cause)}) {}

OperationError::OperationError(hubagent::Error cause)
    : kind_(Kind::failed), message_(cause.message()), cause_(std::move(cause)) {}

OperationError OperationError::timed_out(async::Duration after, const std::optional<OperationError>& last) {
  auto error = timed_out("timed out after " + async::format_duration(after));
  if (!last) return error;
  error.message_ += "; the last error was: " + last->message();
  error.cause_ = last->cause_;
  return error;
}

OperationError OperationError::timed_out(std::string message) {
  return {Kind::timed_out, std::move(message)};
}

OperationError OperationError::rejected(std::string message) {
  return {Kind::rejected, std::move(message)};
}

OperationError OperationError::foreign_config_map(std::string message) {
  return {Kind::foreign_config_map, std::move(message)};
}

OperationError OperationError::superseded(std::string message) {
  return {Kind::superseded, std::move(message)};
}

std::string OperationError::reason() const {
  switch (kind_) {
    case Kind::failed:
      // Of a failed request the message says what is wrong; a reason of our own is a name for it.
      return cause_->request() != nullptr ? reasons::error : std::string{to_string(cause_->reason())};
    case Kind::rejected:
    case Kind::superseded:
      return reasons::error;
    case Kind::timed_out:
      return reasons::timeout;
    case Kind::foreign_config_map:
      return reasons::config_map_conflict;
  }
  return reasons::error;
}

std::string OperationError::describe() const {
  return kind_ == Kind::failed ? cause_->describe() : message_;
}

bool OperationError::may_recover() const {
  return kind_ == Kind::failed && hubagent::may_recover(*cause_);
}

std::string operation_failed(std::string_view where, const OperationError& error) {
  return "operation on " + std::string{where} + " failed: " + error.message();
}

}  // namespace hubferry::migration
