#include "hubferry/hubagent/outcome.hpp"

#include <ostream>
#include <stdexcept>

namespace hubferry::hubagent {

std::string_view to_string(FailureReason reason) {
  switch (reason) {
    case FailureReason::cluster_not_found:
      return "ClusterNotFound";
    case FailureReason::cluster_conflict:
      return "ClusterConflict";
    case FailureReason::cluster_not_available:
      return "ClusterNotAvailable";
    case FailureReason::cluster_unhealthy:
      return "ClusterUnhealthy";
    case FailureReason::cluster_attached:
      return "ClusterAttached";
    case FailureReason::deletion_begun:
      return "DeletionBegun";
    case FailureReason::works_not_applied:
      return "WorksNotApplied";
    case FailureReason::cluster_is_local:
      return "ClusterIsLocal";
    case FailureReason::cluster_is_hosted:
      return "ClusterIsHosted";
    case FailureReason::cluster_is_hub:
      return "ClusterIsHub";
    case FailureReason::resource_not_allowed:
      return "ResourceNotAllowed";
    case FailureReason::resource_invalid:
      return "ResourceInvalid";
    case FailureReason::resource_differs:
      return "ResourceDiffers";
    case FailureReason::klusterlet_config_missing:
      return "KlusterletConfigMissing";
    case FailureReason::permission_missing:
      return "PermissionMissing";
    case FailureReason::placement_not_found:
      return "PlacementNotFound";
    case FailureReason::placement_empty:
      return "PlacementEmpty";
    case FailureReason::hub_not_found:
      return "HubNotFound";
    case FailureReason::hub_unreachable:
      return "HubUnreachable";
    case FailureReason::unknown:
      return "Unknown";
    case FailureReason::error:
      return "Error";
  }
  return "Error";
}

std::ostream& operator<<(std::ostream& out, FailureReason reason) {
  return out << to_string(reason);
}

Error::Error(kube::Error request)
    : reason_(request.kind == kube::ErrorKind::invalid ? FailureReason::resource_invalid : FailureReason::error),
      message_(request.message.empty() ? request.describe() : request.message),
      request_(std::move(request)) {}

Error::Error(FailureReason reason, std::string message) : reason_(reason), message_(std::move(message)) {}

std::string Error::describe() const {
  return request_ ? request_->describe() : message_;
}

Error Error::in_context(const std::string& what) const {
  if (!request_) return *this;
  auto request = *request_;
  request.message = what + (request.message.empty() ? "" : ": " + request.message);
  return Error{std::move(request)};
}

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << error.describe();
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::runtime_error(error.describe() + " at " + where.file_name() + ":" + std::to_string(where.line()));
}

bool may_recover(const Error& error) {
  if (const auto* request = error.request()) return kube::may_recover(request->kind);
  return error.reason() == FailureReason::hub_unreachable || error.reason() == FailureReason::unknown;
}

bool concerns_hub(const Error& error) {
  if (error.is(kube::ErrorKind::forbidden)) return !error.request()->denied_by_admission;
  return error.is(kube::ErrorKind::unreachable) || error.is(kube::ErrorKind::unauthorized);
}

}  // namespace hubferry::hubagent
