#include "migration/timeouts.hpp"

namespace hubferry::migration {

namespace {

std::string_view own_timeout(const Migration& migration) {
  return migration.object.string_at({"spec", "supportedConfigs", "stageTimeout"});
}

}  // namespace

Duration stage_timeout(const Migration& migration, const Phase& phase) {
  const auto own = own_timeout(migration);
  if (own.empty() || timeout_problem(migration)) return default_timeout(phase);
  return async::parse_duration(own);
}

std::optional<std::string> timeout_problem(const Migration& migration) {
  const auto* given = migration.object.find({"spec", "supportedConfigs", "stageTimeout"});
  if (given == nullptr || given->is_null()) return std::nullopt;
  const auto sentence = [](std::string_view text, std::string_view problem) {
    return "spec.supportedConfigs.stageTimeout '" + std::string{text} + "' " + std::string{problem} +
           ": give a positive duration such as 10m or 1h30m";
  };
  if (!given->is_string()) return sentence(json::serialize(*given), "is no text");
  const auto text = own_timeout(migration);
  try {
    if (async::parse_duration(text) > Duration::zero()) return std::nullopt;
    return sentence(text, "is not positive");
  } catch (const std::invalid_argument&) {
    return sentence(text, "cannot be read");
  }
}

async::TimePoint stage_deadline(WallTime started, Duration timeout, const async::Clock& clock) {
  // Times before 1970 come from a status that somebody edited; the span to the earliest would not fit a Duration.
  const auto gone = std::max(Duration::zero(), Duration{clock.wall_now() - std::max(started, WallTime{})});
  return async::later(clock.now(), timeout - gone);
}

}  // namespace hubferry::migration
