#pragma once

#include <boost/system/result.hpp>
#include <optional>
#include <string>

#include "hubferry/async/types.hpp"
#include "hubferry/hubagent/outcome.hpp"

namespace hubferry::migration {

/// Why an operation of a migration, on a hub or on the global hub, did not succeed.
class OperationError {
 public:
  enum class Kind {
    failed,              // an API server or a hub answered with an error, or did not answer; cause() has it
    timed_out,           // it was retried until the phase's deadline; cause() has the last error, if there was one
    rejected,            // what we found makes it impossible; a person has to act
    foreign_config_map,  // the same: the ledger's ConfigMap belongs to somebody else
    superseded,          // another manager works on the migration now: what was decided here counts no more
  };

  OperationError() = default;
  // NOLINTBEGIN(google-explicit-constructor): an error of an API server or of a hub is an operation's error
  OperationError(kube::Error cause);
  OperationError(hubagent::Error cause);
  // NOLINTEND(google-explicit-constructor)
  static OperationError timed_out(async::Duration after, const std::optional<OperationError>& last);
  static OperationError timed_out(std::string message);
  static OperationError rejected(std::string message);
  static OperationError foreign_config_map(std::string message);
  static OperationError superseded(std::string message);

  [[nodiscard]] Kind kind() const { return kind_; }
  /// For conditions and events, without the request's details.
  [[nodiscard]] const std::string& message() const { return message_; }
  /// The condition's reason: "Timeout", "ConfigMapConflict" or "Error".
  [[nodiscard]] std::string reason() const;
  /// For logs: with the request's details.
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] const std::optional<hubagent::Error>& cause() const { return cause_; }
  [[nodiscard]] bool is(kube::ErrorKind kind) const { return cause_ && cause_->is(kind); }
  [[nodiscard]] bool is(hubagent::FailureReason reason) const { return cause_ && cause_->reason() == reason; }
  /// The same operation may succeed later, by itself or after a repair.
  [[nodiscard]] bool may_recover() const;

 private:
  OperationError(Kind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  Kind kind_ = Kind::rejected;
  std::string message_;
  std::optional<hubagent::Error> cause_;
};

template <typename T = void>
using OperationResult = boost::system::result<T, OperationError>;

/// "operation on hub 'hub1' failed: …"
std::string operation_failed(std::string_view where, const OperationError& error);

}  // namespace hubferry::migration
