#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace hubferry::kube::http
