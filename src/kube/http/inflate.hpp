#pragma once

#include <string>
#include <string_view>

#include "hubferry/kube/error.hpp"

namespace hubferry::kube::http {

/// Inflates gzip. Errors: bad_response for data that is cut off, damaged, or larger than `limit` when inflated: a few
/// compressed kilobytes can hold gigabytes.
Result<std::string> inflate_gzip(std::string_view compressed, std::size_t limit);

}  // namespace hubferry::kube::http
