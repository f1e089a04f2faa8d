#pragma once

#include <string_view>

namespace hubferry::app {

/// As people count: "cluster-2" before "cluster-10". Runs of digits compare as numbers, the rest as text.
bool comes_before(std::string_view one, std::string_view other);

}  // namespace hubferry::app
