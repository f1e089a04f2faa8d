#pragma once

#include <boost/system/result.hpp>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"

namespace hubferry::kube {

/// What went wrong with a request, classified once, in the client. No layer above looks at status numbers.
enum class ErrorKind {
  not_found,       // 404: the object, or the kind, does not exist
  already_exists,  // 409 AlreadyExists: an object of that name exists
  conflict,        // 409 Conflict: our resourceVersion or precondition is out of date. Read again, decide again
  invalid,         // 400, 415, 422: the request can never succeed as it is
  gone,            // 410: the resourceVersion or continue token is too old. List again
  forbidden,       // 403: RBAC denies it
  unauthorized,    // 401: expired or wrong credential
  retry_later,   // 429, 503 with Retry-After; a read also 5xx: the server cannot now. Nothing happened: safe to repeat
  unreachable,   // the request was never sent, or it was a read that got no answer
  ambiguous,     // a write was sent, and no answer came or one that leaves open whether it happened (500, a bare
                 // 503, 502, 504). Read before you act
  unsupported,   // 405, 406, or a kind that this server does not serve
  bad_response,  // the server answered something that is not Kubernetes
};

std::string_view to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::bad_response;
  int status = 0;                              // HTTP status, 0 without an answer
  std::string reason;                          // metav1.Status.reason, such as "AlreadyExists"
  std::string message;                         // for people: never holds a secret
  std::optional<async::Duration> retry_after;  // what the server asked for
  bool denied_by_admission = false;            // with `forbidden`: this object is refused; our permissions suffice

  /// "GET …/widgets/a: not found (404 NotFound): widgets \"a\" not found"
  [[nodiscard]] std::string describe() const;
};

std::ostream& operator<<(std::ostream& out, const Error& error);

/// The value, or why there is none. Expected failures are values; exceptions mean cancellation or a bug.
template <typename T = void>
using Result = boost::system::result<T, Error>;

/// Lets Result<T>::value() throw something readable.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

// Which kinds may succeed on a retry; no layer above has a table of its own.
// clang-format off
//                                                            | is_transient     | may_recover
//                                                            | after a new read | after a repair (credential, proxy)
//   retry_later, unreachable, conflict, gone, ambiguous      | yes              | yes
//   unauthorized, bad_response                               | no               | yes
//   not_found, already_exists, invalid, forbidden,           | no               | no: this is the answer
//   unsupported                                              |                  |
// clang-format on

/// True if the operation may succeed later on its own, if each attempt reads the current state first.
[[nodiscard]] bool is_transient(ErrorKind kind);

/// True for is_transient(), and where an operator may repair it meanwhile: for operations retried for minutes.
[[nodiscard]] bool may_recover(ErrorKind kind);

/// From an HTTP status and, where there is one, the metav1.Status in the body: what it means as answer to a read.
Error error_from_status(int status, std::string_view body);

/// What the same answer to a write means. After a server error (500), or an error of a proxy in front of it (502, 503
/// without Retry-After, 504), it is unknown whether the write happened: ambiguous.
Error as_answer_to_write(Error error);

/// A longer Retry-After is cut to this: a controller that sleeps for a day is dead.
inline constexpr async::Duration longest_retry_after = std::chrono::minutes{5};

}  // namespace hubferry::kube
