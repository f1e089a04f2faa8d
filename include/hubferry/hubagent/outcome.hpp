#pragma once

#include <boost/system/result.hpp>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::hubagent {

/// Why an operation failed, as a whole or for one cluster. Users see the names of to_string() in status, events and
/// plans.
enum class FailureReason {
  cluster_not_found,
  cluster_conflict,       // the cluster, or an object of it, belongs to another migration or to somebody else
  cluster_not_available,  // also: not accepted, being deleted
  cluster_unhealthy,      // its agent is there and alive, and does not report it as Available
  cluster_attached,       // the source was never able to deny it
  deletion_begun,         // the source has begun to delete it
  works_not_applied,      // the cluster is there and alive, and its agent has not applied a ManifestWork
  cluster_is_local,       // local-cluster: the hub itself
  cluster_is_hosted,      // imported in hosted mode
  cluster_is_hub,
  resource_not_allowed,       // the source sent an object that may not be copied
  resource_invalid,           // the API server rejects the object
  resource_differs,           // the copy on the target is missing or differs
  klusterlet_config_missing,  // the target has no KlusterletConfig of the name that the cluster refers to
  permission_missing,         // our account on the hub may not do what the migration needs
  placement_not_found,
  placement_empty,
  hub_not_found,
  hub_unreachable,  // there is no usable connection to the hub
  unknown,          // the state could not be determined
  error,            // any other failure, those of requests included
};

std::string_view to_string(FailureReason reason);
std::ostream& operator<<(std::ostream& out, FailureReason reason);

/// Why an operation failed: either a request to the hub's API server did, or we have a reason of our own.
class Error {
 public:
  Error() = default;
  Error(kube::Error request);  // NOLINT(google-explicit-constructor): every failed request is one
  Error(FailureReason reason, std::string message);

  [[nodiscard]] FailureReason reason() const { return reason_; }
  /// A message for people, without any secret.
  [[nodiscard]] const std::string& message() const { return message_; }
  /// The failed request; nullptr where the reason is our own.
  [[nodiscard]] const kube::Error* request() const { return request_ ? &*request_ : nullptr; }
  /// True for a failed request of this kind.
  [[nodiscard]] bool is(kube::ErrorKind kind) const { return request_ && request_->kind == kind; }
  /// The message, with kind and status of a failed request: for logs and for a cluster's failure.
  [[nodiscard]] std::string describe() const;

  /// "cannot pause BareMetalHost c1/host: <message of the server>". An own reason has a complete message already.
  [[nodiscard]] Error in_context(const std::string& what) const;

 private:
  FailureReason reason_ = FailureReason::error;
  std::string message_;
  std::optional<kube::Error> request_;
};

std::ostream& operator<<(std::ostream& out, const Error& error);
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

/// The value, or why there is none. Exceptions mean cancellation or a bug.
template <typename T = void>
using Result = boost::system::result<T, Error>;

/// The same operation may succeed later, by itself or after a repair (kube::may_recover).
[[nodiscard]] bool may_recover(const Error& error);

/// True for errors that concern the hub as a whole: it does not answer, or refuses our credential or our permissions.
[[nodiscard]] bool concerns_hub(const Error& error);

struct ClusterFailure {
  std::string cluster;
  FailureReason reason = FailureReason::error;
  std::string message;  // for people, without any secret
};

/// What an operation achieved: each of its clusters is in exactly one of the two.
struct Outcome {
  ClusterNames done;
  std::vector<ClusterFailure> failed;
  std::vector<Error> of_hub{};  // of validate(): what is wrong with the hub as a whole
};

}  // namespace hubferry::hubagent
