#include "hubferry/kube/resource_version.hpp"

#include <charconv>
#include <optional>

namespace hubferry::kube {

namespace {

std::optional<std::uint64_t> read_version(std::string_view version) {
  std::uint64_t number = 0;
  const auto [end, ec] = std::from_chars(version.data(), version.data() + version.size(), number);
  if (ec != std::errc{} || end != version.data() + version.size()) return std::nullopt;
  return number;
}

}  // namespace

std::uint64_t resource_version_number(std::string_view version) {
  return read_version(version).value_or(0);
}

bool is_at_least(std::string_view version, std::string_view other) {
  const auto number = read_version(version);
  const auto other_number = read_version(other);
  return number && other_number ? *number >= *other_number : version == other;
}

}  // namespace hubferry::kube
