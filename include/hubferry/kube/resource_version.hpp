#pragma once

#include <cstdint>
#include <string_view>

namespace hubferry::kube {

/// A resourceVersion as a number; 0 if it is none. Every API server counts with one counter per store, so the numbers
/// of one resource of one server can be compared; those of different servers cannot.
[[nodiscard]] std::uint64_t resource_version_number(std::string_view version);

/// True if `version` is `other` or newer. Versions that are no numbers can only be equal.
[[nodiscard]] bool is_at_least(std::string_view version, std::string_view other);

}  // namespace hubferry::kube
