#pragma once

#include <boost/system/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::sim {

namespace json = kube::json;

/// The error of a request, as returned in a metav1.Status.
struct StatusError {
  int code = 500;
  std::string reason = "InternalError";
  std::string message;
  json::object details;
  std::optional<int> retry_after_seconds;

  [[nodiscard]] json::object to_status() const;
  [[nodiscard]] kube::Error to_error() const;
};

template <typename T = void>
using Outcome = boost::system::result<T, StatusError>;

[[noreturn]] void throw_exception_from_error(const StatusError& failure, const boost::source_location& where);

/// One validation error: "spec.size: Invalid value: …".
struct FieldError {
  std::string field;
  std::string text;    // "Required value", "Invalid value: \"integer\": …"
  std::string reason;  // FieldValueInvalid …
};

namespace errors {

StatusError not_found(const kube::Resource& resource, std::string_view name);
/// The path is unknown: a kind that is not served.
StatusError no_such_resource();
StatusError already_exists(const kube::Resource& resource, std::string_view name);
StatusError conflict(const kube::Resource& resource, std::string_view name, std::string_view why);
/// The resourceVersion in the request is not the current one.
StatusError modified(const kube::Resource& resource, std::string_view name);
StatusError forbidden(const kube::Resource& resource, std::string_view name, std::string_view why);
StatusError bad_request(std::string message);
StatusError invalid(const kube::Resource& resource, std::string_view name, const std::vector<FieldError>& field_errors);
StatusError gone(std::string message);
StatusError method_not_allowed();
StatusError unauthorized();
/// The requested resourceVersion has not been reached.
StatusError too_large_resource_version(std::int64_t asked, std::int64_t current);
StatusError of_status(int code, std::optional<int> retry_after_seconds);

}  // namespace errors

}  // namespace hubferry::sim
