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

/// Why a request failed, as the server's metav1.Status will say it.
struct Failure {
  int code = 500;
  std::string reason = "InternalError";
  std::string message;
  json::object details;
  std::optional<int> retry_after_seconds;

  [[nodiscard]] json::object to_status() const;
  [[nodiscard]] kube::Error to_error() const;
};

template <typename T = void>
using Outcome = boost::system::result<T, Failure>;

[[noreturn]] void throw_exception_from_error(const Failure& failure, const boost::source_location& where);

/// One complaint of validation: "spec.size: Invalid value: …".
struct Complaint {
  std::string field;
  std::string text;    // "Required value", "Invalid value: \"integer\": …"
  std::string reason;  // FieldValueInvalid …
};

namespace failures {

Failure not_found(const kube::Resource& resource, std::string_view name);
/// The path leads nowhere: an unknown kind.
Failure no_such_resource();
Failure already_exists(const kube::Resource& resource, std::string_view name);
Failure conflict(const kube::Resource& resource, std::string_view name, std::string_view why);
/// The resourceVersion in the request is not the current one.
Failure modified(const kube::Resource& resource, std::string_view name);
Failure forbidden(const kube::Resource& resource, std::string_view name, std::string_view why);
Failure bad_request(std::string message);
Failure invalid(const kube::Resource& resource, std::string_view name, const std::vector<Complaint>& complaints);
Failure gone(std::string message);
Failure method_not_allowed();
Failure unauthorized();
/// The resourceVersion asked for has not been reached.
Failure too_large_resource_version(std::int64_t asked, std::int64_t current);
Failure of_status(int code, std::optional<int> retry_after_seconds);

}  // namespace failures

}  // namespace hubferry::sim
