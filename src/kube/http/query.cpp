#include "kube/http/query.hpp"

namespace hubferry::kube::http {

void append_percent_encoded(std::string& out, std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
}

void Query::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  text_ += text_.empty() ? '?' : '&';
  append_percent_encoded(text_, name);
  text_ += '=';
  append_percent_encoded(text_, value);
}

void Query::add_number(std::string_view name, std::int64_t value) {
  if (value > 0) add(name, std::to_string(value));
}

}  // namespace hubferry::kube::http
