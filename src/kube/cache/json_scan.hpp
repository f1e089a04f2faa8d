#pragma once

#include <cstddef>
#include <string_view>

namespace hubferry::kube::detail {

/// The end (one past the closing bracket) of the JSON object or array that begins at `begin`; npos when it is not
/// closed. Strings and escapes are respected; whether brackets match in kind is not looked at.
/// This sees every byte of every event: it works on blocks of 64 bytes.
std::size_t end_of_container(std::string_view text, std::size_t begin);

/// The position of the quote that closes the string opened at `begin`; npos when there is none.
std::size_t end_of_string(std::string_view text, std::size_t begin);

}  // namespace hubferry::kube::detail
