#pragma once

#include <boost/system/result.hpp>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"

namespace hubferry::kube {

/// What went wrong with a request, decided once, at the client's edge. Nobody above looks at status numbers.
enum class ErrorKind {
  not_found,       // 404: the object, or the kind, does not exist
  already_exists,  // 409 AlreadyExists: a create met an object of that name
  conflict,        // 409 Conflict: our resourceVersion or precondition is out of date. Read again, decide again
  invalid,         // 400, 415, 422: the request can never succeed as it is
  gone,            // 410: the resourceVersion or continue token is too old. List afresh
  forbidden,       // 403: we may not
  unauthorized,    // 401: nobody knows us (expired or wrong credential)
  retry_later,   // 429, 503 with Retry-After; a read also 5xx: the server cannot now. Nothing happened: safe to repeat
  unreachable,   // the request was never sent, or it was a read that got no answer
  ambiguous,     // a write was sent, and no answer came or one that does not tell whether it happened (500, a bare
                 // 503, 502, 504). Read before you act
  unsupported,   // 405, 406, or a kind that this server does not serve
  bad_response,  // the server answered something that is not Kubernetes
};

std::string_view to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::bad_response;
  int status = 0;                              // HTTP status, 0 without an answer
  std::string reason;                          // metav1.Status.reason, such as "AlreadyExists"
  std::string message;                         // a sentence for people: never holds a secret
  std::optional<async::Duration> retry_after;  // what the server asked for

  /// "GET …/widgets/a: not found (404 NotFound): widgets \"a\" not found"
  [[nodiscard]] std::string describe() const;
};

std::ostream& operator<<(std::ostream& out, const Error& error);

/// The value, or why there is none. Expected failures are values; exceptions mean cancellation or a bug.
template <typename T = void>
using Result = boost::system::result<T, Error>;

/// Lets Result<T>::value() throw something readable.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

/// What a retry can hope for, by kind; `is_transient` and `may_recover` read this table, nobody has another.
///
///   kind                                        | the same request again | after reading again | after a repair
///   retry_later, unreachable                    | yes                    | yes                 | yes
///   conflict, gone, ambiguous                   | no                     | yes                 | yes
///   unauthorized, bad_response                  | no                     | no                  | yes: a new
///   credential, a proxy not_found, already_exists, invalid,         | no                     | no                  |
///   no: this is the answer forbidden, unsupported                      |                        | |

/// The same request may succeed later, unchanged.
[[nodiscard]] bool is_retryable(const Error& error);

/// The operation may succeed later by itself, if each attempt reads the current state first.
[[nodiscard]] bool is_transient(ErrorKind kind);

/// is_transient(), or somebody may repair it meanwhile: for operations that are retried for minutes.
[[nodiscard]] bool may_recover(ErrorKind kind);

/// From an HTTP status and, where there is one, the metav1.Status in the body: what it means as answer to a read.
Error error_from_status(int status, std::string_view body);

/// What the same answer to a write means. A server that fails on the way (500), and somebody in front of it who gave up
/// or met nobody (502, 503 without Retry-After, 504), do not know what became of it: ambiguous.
Error as_answer_to_write(Error error);

/// Nobody is believed who asks for a longer pause than this: a controller that sleeps for a day is dead.
inline constexpr async::Duration longest_retry_after = std::chrono::minutes{5};

}  // namespace hubferry::kube
