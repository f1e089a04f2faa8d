// Whatever a person writes into a migration, and whatever is in its status, is read; and a spec in which nothing is
// found wrong says unambiguously what moves from where to where. The first line is the spec, the rest the status.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hubferry/migration/validation.hpp"

namespace {

using namespace hubferry::migration;
namespace json = boost::json;

void require(bool condition) {
  if (!condition) std::abort();
}

json::value parse(std::string_view text) {
  boost::system::error_code failed;
  auto value = json::parse({text.data(), text.size()}, failed);
  return failed ? json::value{} : value;
}

/// What the spec says, in its own fields again.
json::object written(const MigrationSpec& spec) {
  json::object object{{"from", spec.from}, {"to", spec.to}};
  if (spec.clusters) object["includedManagedClusters"] = json::array(spec.clusters->begin(), spec.clusters->end());
  if (spec.placement) object["includedManagedClustersPlacementRef"] = *spec.placement;
  return object;
}

void use(const json::value& given) {
  const auto spec = read_spec({{"spec", given}});
  if (spec.clusters)
    require(std::ranges::adjacent_find(*spec.clusters, std::ranges::greater_equal{}) == spec.clusters->end());
  require(!spec.stage_timeout || (*spec.stage_timeout > spec.stage_timeout->zero() && !spec.stage_timeout_problem));
  require(!spec.time_to_live || *spec.time_to_live >= spec.time_to_live->zero());
  require(selection_of(spec) == selection_of(read_spec({{"spec", written(spec)}})));
  const auto problems = check_spec(spec);
  require(problems.empty() == joined(problems).empty());
  if (!problems.empty()) return;
  require(!spec.from.empty() && !spec.to.empty() && spec.from != spec.to);
  require(spec.clusters.has_value() != spec.placement.has_value());
  require(spec.clusters ? !spec.clusters->empty() : !spec.placement->empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto end = std::min(text.find('\n'), text.size());
  use(parse(text.substr(0, end)));
  const auto status = parse(text.substr(end));
  if (status.is_object()) (void)read_status(status.get_object());
  return 0;
}
