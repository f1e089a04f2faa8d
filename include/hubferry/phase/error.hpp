#pragma once

#include <boost/system/result.hpp>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::phase {

enum class ErrorKind {
  network,  // a server could not be reached, or cannot answer now: it may work later
  timeout,  // the handler's declared timeout has passed
  other,    // everything else
};

/// Why a handler failed. Which errors end a phase is the definition's choice (is_fatal); by default network errors are
/// retried and all others are fatal.
struct Error {
  Error() = default;
  explicit Error(std::string text, ErrorKind error_kind = ErrorKind::other)
      : kind(error_kind), message(std::move(text)) {}
  /// A network error if kube::is_transient().
  explicit Error(const kube::Error& error);

  static Error network(std::string text) { return Error{std::move(text), ErrorKind::network}; }
  /// From what a handler threw: timeouts, broken or refused connections, names that cannot be looked up and aborted
  /// operations are network errors; any other system error is not.
  static Error from_exception(const std::exception_ptr& exception);
  /// The single error as it is, or one that lists all, with a short text however many there are.
  static Error all_of(std::vector<Error> errors);

  ErrorKind kind = ErrorKind::other;
  std::string message;                         // for people
  std::optional<async::Duration> retry_after;  // the server's Retry-After, if it sent one
  std::exception_ptr exception;                // what was thrown, for is_fatal functions that want to look
  std::vector<Error> causes;                   // of a list
};

template <typename T = void>
using Result = boost::system::result<T, Error>;

/// Lets Result<T>::value() throw something readable.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

}  // namespace hubferry::phase
