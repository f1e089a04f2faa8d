#pragma once

#include <string_view>

/// What an API server accepts as a name (k8s.io/apimachinery/pkg/util/validation).
namespace hubferry::kube {

/// RFC 1123 label: at most 63 of a-z, 0-9 and '-', not beginning or ending with '-'. A namespace's name.
[[nodiscard]] bool is_dns_label(std::string_view text);

/// RFC 1123 subdomain: at most 253 characters, labels joined by dots. Most objects' names. As on a server, a part
/// between dots may be longer than 63.
[[nodiscard]] bool is_dns_subdomain(std::string_view text);

/// A label's key, an annotation's key or a finalizer: "name" or "prefix.example.com/name".
[[nodiscard]] bool is_qualified_name(std::string_view text);

/// A label's value: empty, or at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.
[[nodiscard]] bool is_label_value(std::string_view text);

/// The name of one object in a URL's path: not empty, neither "." nor "..", without '/' and '%'.
[[nodiscard]] bool is_path_segment(std::string_view text);

}  // namespace hubferry::kube
