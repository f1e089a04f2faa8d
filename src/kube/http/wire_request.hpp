#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hubferry/kube/api.hpp"

namespace hubferry::kube::http {

/// Everything but RFC 3986's unreserved characters is encoded.
void append_percent_encoded(std::string& out, std::string_view text);

/// The part of a request target behind the path. Parameters without a value are left out.
class Query {
 public:
  void add(std::string_view name, std::string_view value);
  void add_flag(std::string_view name, bool set) { add(name, set ? "true" : ""); }
  /// Left out unless positive.
  void add_number(std::string_view name, std::int64_t value);

  /// "?a=b&c=d", percent-encoded, or empty.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A request as it goes over the wire, except for what belongs to the connection: host and credentials.
struct WireRequest {
  std::string_view method;        // "GET"
  std::string_view verb;          // "LIST": what the request does, for metrics
  std::string path;               // percent-encoded, without the server's prefix
  std::string query;              // "?limit=500", or empty
  std::string_view content_type;  // empty without a body
  std::string body;
  bool read_only = true;     // repeating it changes nothing
  bool gzip = true;          // a compressed answer is welcome
  bool slow_answer = false;  // it may take longer than the timeout while it keeps coming

  /// "GET /api/v1/namespaces": how error messages name it.
  [[nodiscard]] std::string display() const;
};

WireRequest wire_request(const Request& request, std::string_view default_field_manager);
WireRequest wire_request(const Resource& resource, const ListOptions& options);
WireRequest wire_request(const Resource& resource, const WatchOptions& options);
WireRequest wire_request(std::string path);

}  // namespace hubferry::kube::http
