#pragma once

#include <algorithm>
#include <string_view>

namespace hubferry::kube {

/// Whether a token can stand in an HTTP header. One with a line end in it could smuggle in headers of its own.
inline bool fits_into_a_header(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace hubferry::kube
