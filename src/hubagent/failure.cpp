#include "hubagent/failure.hpp"

namespace hubferry::hubagent {

namespace {

/// Refusals of one object that a server answers as if they were a matter of rights.
bool is_refusal_of_one_object(const Error& error) {
  return error.message.find("admission webhook") != std::string::npos ||
         error.message.find("ValidatingAdmissionPolicy") != std::string::npos ||
         error.message.find("being terminated") != std::string::npos;
}

}  // namespace

Error failure(const char* reason, std::string message) {
  return {ErrorKind::invalid, 0, reason, std::move(message), std::nullopt};
}

Error in_context(Error error, const std::string& what) {
  // A verdict of ours is a whole sentence already.
  if (error.status == 0 && !error.reason.empty()) return error;
  error.message = what + (error.message.empty() ? "" : ": " + error.message);
  return error;
}

bool is_hub_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::unreachable:
    case ErrorKind::unauthorized:
      return true;
    case ErrorKind::forbidden:
      return !is_refusal_of_one_object(error);
    default:
      return false;
  }
}

ClusterFailure failure_of(const std::string& cluster, const Error& error) {
  if (error.status == 0 && !error.reason.empty()) return {cluster, error.reason, error.message};
  return {cluster, error.kind == ErrorKind::invalid ? reasons::invalid : reasons::other, error.describe()};
}

std::string described(const kube::Resource& resource, const kube::Key& key) {
  return resource.kind + " " + kube::to_string(key);
}

}  // namespace hubferry::hubagent
