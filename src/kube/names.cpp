#include "hubferry/kube/names.hpp"

#include <algorithm>

namespace hubferry::kube {

namespace {

constexpr std::size_t longest_label = 63;
constexpr std::size_t longest_subdomain = 253;

bool is_lower_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_alphanumeric(char c) {
  return is_lower_alphanumeric(c) || (c >= 'A' && c <= 'Z');
}

bool is_label_of_any_length(std::string_view text) {
  return !text.empty() && is_lower_alphanumeric(text.front()) && is_lower_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_lower_alphanumeric(c) || c == '-'; });
}

bool is_name_part(std::string_view text) {
  return !text.empty() && text.size() <= longest_label && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

bool is_dns_label(std::string_view text) {
  return text.size() <= longest_label && is_label_of_any_length(text);
}

bool is_dns_subdomain(std::string_view text) {
  if (text.size() > longest_subdomain) return false;
  while (true) {
    const auto dot = text.find('.');
    if (!is_label_of_any_length(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_qualified_name(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_name_part(text);
  return is_dns_subdomain(text.substr(0, slash)) && is_name_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) {
  return text.empty() || is_name_part(text);
}

bool is_path_segment(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find_first_of("/%") == std::string_view::npos;
}

}  // namespace hubferry::kube
