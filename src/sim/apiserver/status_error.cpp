#include "sim/apiserver/status_error.hpp"

#include <boost/json/serialize.hpp>
#include <stdexcept>

namespace hubferry::sim {

json::object StatusError::to_status() const {
  json::object status{{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object{}},
                      {"status", "Failure"}, {"message", message}, {"reason", reason},
                      {"code", code}};
  json::object extended = details;
  if (retry_after_seconds) extended["retryAfterSeconds"] = *retry_after_seconds;
  if (!extended.empty()) status["details"] = std::move(extended);
  return status;
}

kube::Error StatusError::to_error() const {
  return kube::error_from_status(code, json::serialize(to_status()));
}

void throw_exception_from_error(const StatusError& failure, const boost::source_location& where) {
  throw std::runtime_error(failure.message + " at " + where.file_name());
}

namespace errors {

namespace {

std::string quoted(const kube::Resource& resource, std::string_view name) {
  return resource.display_name() + " \"" + std::string{name} + "\"";
}

json::object details_of(const kube::Resource& resource, std::string_view name) {
  json::object details;
  if (!name.empty()) details["name"] = name;
  if (!resource.group.empty()) details["group"] = resource.group;
  details["kind"] = resource.plural;
  return details;
}

}  // namespace

StatusError not_found(const kube::Resource& resource, std::string_view name) {
  return {404, "NotFound", quoted(resource, name) + " not found", details_of(resource, name), {}};
}

StatusError no_such_resource() {
  return {404, "NotFound", "the server could not find the requested resource", {}, {}};
}

StatusError already_exists(const kube::Resource& resource, std::string_view name) {
  return {409, "AlreadyExists", quoted(resource, name) + " already exists", details_of(resource, name), {}};
}

StatusError conflict(const kube::Resource& resource, std::string_view name, std::string_view why) {
  return {409,
          "Conflict",
          "Operation cannot be fulfilled on " + quoted(resource, name) + ": " + std::string{why},
          details_of(resource, name),
          {}};
}

StatusError modified(const kube::Resource& resource, std::string_view name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version and try again");
}

StatusError forbidden(const kube::Resource& resource, std::string_view name, std::string_view why) {
  const std::string what = name.empty() ? resource.display_name() : quoted(resource, name);
  return {403, "Forbidden", what + " is forbidden: " + std::string{why}, details_of(resource, name), {}};
}

StatusError bad_request(std::string message) {
  return {400, "BadRequest", std::move(message), {}, {}};
}

StatusError invalid(const kube::Resource& resource, std::string_view name,
                    const std::vector<FieldError>& field_errors) {
  std::string message = resource.kind;
  if (!resource.group.empty()) message += "." + resource.group;
  message += " \"" + std::string{name} + "\" is invalid: ";
  json::array causes;
  std::string list;
  for (const auto& field_error : field_errors) {
    if (!list.empty()) list += ", ";
    list += field_error.field + ": " + field_error.text;
    causes.push_back(
        json::object{{"reason", field_error.reason}, {"message", field_error.text}, {"field", field_error.field}});
  }
  message += field_errors.size() == 1 ? list : "[" + list + "]";
  json::object details = details_of(resource, name);
  details["kind"] = resource.kind;
  details["causes"] = std::move(causes);
  return {422, "Invalid", std::move(message), std::move(details), {}};
}

StatusError gone(std::string message) {
  return {410, "Expired", std::move(message), {}, {}};
}

StatusError method_not_allowed() {
  return {405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}, {}};
}

StatusError unauthorized() {
  return {401, "Unauthorized", "Unauthorized", {}, {}};
}

StatusError too_large_resource_version(std::int64_t asked, std::int64_t current) {
  json::object cause{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}};
  return {504, "Timeout",
          "Too large resource version: " + std::to_string(asked) + ", current: " + std::to_string(current),
          json::object{{"causes", json::array{std::move(cause)}}}, 1};
}

StatusError of_status(int code, std::optional<int> retry_after_seconds) {
  StatusError failure;
  failure.code = code;
  failure.retry_after_seconds = retry_after_seconds;
  switch (code) {
    case 401:
      return unauthorized();
    case 403:
      failure.reason = "Forbidden";
      failure.message = "forbidden";
      break;
    case 404:
      failure.reason = "NotFound";
      failure.message = "not found";
      break;
    case 409:
      failure.reason = "Conflict";
      failure.message =
          "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest "
          "version and try again";
      break;
    case 410:
      failure.reason = "Expired";
      failure.message = "too old resource version";
      break;
    case 429:
      failure.reason = "TooManyRequests";
      failure.message = "Too many requests, please try again later.";
      if (!failure.retry_after_seconds) failure.retry_after_seconds = 1;
      break;
    case 503:
      failure.reason = "ServiceUnavailable";
      failure.message = "the server is currently unable to handle the request";
      break;
    case 504:
      failure.reason = "Timeout";
      failure.message = "the request timed out";
      break;
    default:
      failure.message = "Internal error occurred: a fault was injected";
  }
  return failure;
}

}  // namespace errors

}  // namespace hubferry::sim
