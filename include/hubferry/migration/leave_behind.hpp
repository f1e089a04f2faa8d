#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hubferry::migration {

/// The value of names::leave_annotation, read: what a person gives up. "hub2" is everything of the migration on that
/// hub, "hub2/a" what belongs to cluster a there. Separated by commas; spaces around a name do not count.
std::vector<std::string> read_leave_behind(std::string_view annotation);

}  // namespace hubferry::migration
