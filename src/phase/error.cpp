#include "hubferry/phase/error.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <system_error>

#include "hubferry/phase/state.hpp"

namespace hubferry::phase {

namespace {

constexpr std::size_t errors_shown = 5;

/// Not for a process that is out of descriptors, memory or disk: endless retries would hide that.
bool is_network(int system_error) {
  switch (system_error) {
    case ECANCELED:  // by somebody else: the handler was not cancelled
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case EADDRNOTAVAIL:
      return true;
    default:
      return false;
  }
}

bool is_network(const boost::system::error_code& code) {
  namespace error = async::asio::error;
  if (code.category() == boost::system::system_category() || code.category() == boost::system::generic_category())
    return is_network(code.value());
  return code == error::eof || code == error::host_not_found || code == error::host_not_found_try_again;
}

bool is_network(const std::error_code& code) {
  return (code.category() == std::system_category() || code.category() == std::generic_category()) &&
         is_network(code.value());
}

}  // namespace

Error::Error(const kube::Error& error)
    : kind(kube::is_transient(error.kind) ? ErrorKind::network : ErrorKind::other),
      message(error.describe()),
      retry_after(error.retry_after) {}

Error Error::from_exception(const std::exception_ptr& exception) {
  Error error{async::describe(exception)};
  error.exception = exception;
  try {
    std::rethrow_exception(exception);
  } catch (const boost::system::system_error& e) {
    if (is_network(e.code())) error.kind = ErrorKind::network;
  } catch (const std::system_error& e) {
    if (is_network(e.code())) error.kind = ErrorKind::network;
  } catch (...) {
    // Anything else is a bug of the handler: a retry would not help.
  }
  return error;
}

Error Error::all_of(std::vector<Error> errors) {
  if (errors.size() == 1) return std::move(errors.front());
  Error all;
  all.kind = ErrorKind::network;
  all.message = std::to_string(errors.size()) + " errors: ";
  std::size_t shown = 0;
  for (const auto& error : errors) {
    if (error.kind != ErrorKind::network) all.kind = ErrorKind::other;
    if (error.retry_after && (!all.retry_after || *error.retry_after < *all.retry_after))
      all.retry_after = error.retry_after;
    if (shown == errors_shown) continue;
    if (shown++ > 0) all.message += "; ";
    all.message += shortened(error.message, longest_error_text / errors_shown);
  }
  if (shown < errors.size()) all.message += "; …";
  all.causes = std::move(errors);
  return all;
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::runtime_error(error.message);
}

}  // namespace hubferry::phase
