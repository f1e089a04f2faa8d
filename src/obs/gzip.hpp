#pragma once

#include <string>
#include <string_view>

namespace hubferry::obs {

/// `text` as a gzip file.
std::string gzip(std::string_view text);

}  // namespace hubferry::obs
