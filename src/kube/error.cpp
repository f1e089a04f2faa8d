#include "hubferry/kube/error.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <ostream>
#include <stdexcept>

#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

namespace {

ErrorKind classify(int status, std::string_view reason) {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return ErrorKind::invalid;
    case 401:
      return ErrorKind::unauthorized;
    case 403:
      return ErrorKind::forbidden;
    case 404:
      return ErrorKind::not_found;
    case 405:
    case 406:
      return ErrorKind::unsupported;
    case 409:
      return reason == "AlreadyExists" ? ErrorKind::already_exists : ErrorKind::conflict;
    case 410:
      return ErrorKind::gone;
    case 408:
    case 429:
      return ErrorKind::retry_later;
    default:
      return status >= 500 ? ErrorKind::retry_later : ErrorKind::bad_response;
  }
}

/// Whether admission, not authorization, answered 403. metav1.Status has no field for that: a terminating namespace is
/// named as a cause, webhooks, policies and quotas only by the API server's own phrases.
bool is_denied_by_admission(const json::object& status, std::string_view message) {
  const auto* causes = find(status, {"details", "causes"});
  if (causes != nullptr && causes->is_array())
    for (const auto& cause : causes->get_array())
      if (cause.is_object() && string_at(cause.get_object(), {"reason"}) == "NamespaceTerminating") return true;
  const auto says = [&](std::string_view phrase) { return message.find(phrase) != std::string_view::npos; };
  return says("admission webhook") || says("ValidatingAdmissionPolicy") || says("being terminated") ||
         says("exceeded quota");
}

/// An answer that is not a Status may be a whole HTML page of some proxy: its beginning says enough.
std::string excerpt(std::string_view body) {
  constexpr std::size_t most = 200;
  std::string text{body.substr(0, most)};
  for (auto& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return body.size() > most ? text + "…" : text;
}

}  // namespace

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::not_found:
      return "not found";
    case ErrorKind::already_exists:
      return "already exists";
    case ErrorKind::conflict:
      return "conflict";
    case ErrorKind::invalid:
      return "invalid";
    case ErrorKind::gone:
      return "gone";
    case ErrorKind::forbidden:
      return "forbidden";
    case ErrorKind::unauthorized:
      return "unauthorized";
    case ErrorKind::retry_later:
      return "retry later";
    case ErrorKind::unreachable:
      return "unreachable";
    case ErrorKind::ambiguous:
      return "ambiguous";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::bad_response:
      return "bad response";
  }
  return "unknown";
}

std::string Error::describe() const {
  std::string text{to_string(kind)};
  if (status != 0) {
    text += " (" + std::to_string(status);
    if (!reason.empty()) text += " " + reason;
    text += ")";
  }
  if (!message.empty()) text += ": " + message;
  return text;
}

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << error.describe();
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::runtime_error(error.describe() + " at " + where.file_name() + ":" + std::to_string(where.line()));
}

bool is_transient(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::retry_later:
    case ErrorKind::unreachable:
    case ErrorKind::conflict:
    case ErrorKind::gone:
    case ErrorKind::ambiguous:
      return true;
    case ErrorKind::unauthorized:
    case ErrorKind::bad_response:
    case ErrorKind::not_found:
    case ErrorKind::already_exists:
    case ErrorKind::invalid:
    case ErrorKind::forbidden:
    case ErrorKind::unsupported:
      return false;
  }
  return false;
}

bool may_recover(ErrorKind kind) {
  return is_transient(kind) || kind == ErrorKind::unauthorized || kind == ErrorKind::bad_response;
}

Error error_from_status(int status, std::string_view body) {
  Error error;
  error.status = status;
  boost::system::error_code ec;
  const json::value parsed = json::parse(body, ec);
  if (!ec && parsed.is_object() && string_at(parsed.get_object(), {"kind"}) == "Status") {
    const auto& content = parsed.get_object();
    error.reason = string_at(content, {"reason"});
    error.message = string_at(content, {"message"});
    const auto* seconds = find(content, {"details", "retryAfterSeconds"});
    if (seconds != nullptr && seconds->is_int64() && seconds->get_int64() > 0) {
      constexpr auto most = std::chrono::duration_cast<std::chrono::seconds>(longest_retry_after).count();
      error.retry_after = std::chrono::seconds{std::min<std::int64_t>(seconds->get_int64(), most)};
    }
    const auto* code = content.if_contains("code");
    if (status == 0 && code != nullptr && code->is_int64()) error.status = static_cast<int>(code->get_int64());
    error.denied_by_admission = error.status == 403 && is_denied_by_admission(content, error.message);
  } else {
    error.message = excerpt(body);
  }
  error.kind = classify(error.status, error.reason);
  return error;
}

Error as_answer_to_write(Error error) {
  const bool refused_unread = error.status == 503 && error.retry_after.has_value();
  if (error.status >= 500 && !refused_unread) error.kind = ErrorKind::ambiguous;
  return error;
}

}  // namespace hubferry::kube
