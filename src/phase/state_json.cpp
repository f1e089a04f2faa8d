#include <array>
#include <optional>

#include "hubferry/phase/state.hpp"

namespace hubferry::phase {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

/// Four components to a digit: the first one is the lowest bit.
std::string bits_to_text(const std::vector<bool>& bits) {
  std::string text((bits.size() + 3) / 4, '0');
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned nibble = 0;
    for (std::size_t bit = 0; bit < 4; ++bit)
      if (const auto index = at * 4 + bit; index < bits.size() && bits[index]) nibble |= 1U << bit;
    text[at] = digits[nibble];
  }
  return text;
}

std::optional<std::vector<bool>> bits_from_text(std::string_view text, std::size_t count) {
  if (text.size() != (count + 3) / 4) return std::nullopt;
  std::vector<bool> bits(count);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto nibble = digits.find(text[at]);
    if (nibble == std::string_view::npos) return std::nullopt;
    for (std::size_t bit = 0; bit < 4; ++bit)
      if (const auto index = at * 4 + bit; index < count) bits[index] = ((nibble >> bit) & 1U) != 0;
  }
  return bits;
}

std::string_view text_at(const json::object& from, std::string_view name) {
  const auto* found = from.if_contains(name);
  return found != nullptr && found->is_string() ? std::string_view{found->get_string()} : std::string_view{};
}

bool flag_at(const json::object& from, std::string_view name) {
  const auto* found = from.if_contains(name);
  return found != nullptr && found->is_bool() && found->get_bool();
}

std::optional<async::WallTime> time_at(const json::object& from, std::string_view name) {
  const auto text = text_at(from, name);
  if (text.empty()) return std::nullopt;
  try {
    return std::chrono::floor<std::chrono::seconds>(async::parse_time(text));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

std::size_t count_at(const json::object& from, std::string_view name) {
  const auto* found = from.if_contains(name);
  if (found == nullptr || !found->is_int64() || found->get_int64() < 0) return 0;
  return static_cast<std::size_t>(found->get_int64());
}

json::object to_json(const Summary& summary) {
  json::object out;
  out["total"] = static_cast<std::int64_t>(summary.total);
  out["done"] = static_cast<std::int64_t>(summary.done);
  out["failed"] = static_cast<std::int64_t>(summary.failed);
  out["names"] = summary.names;
  out["completed"] = bits_to_text(summary.completed);
  if (summary.failed > 0) out["failing"] = bits_to_text(summary.failing);
  return out;
}

/// Null if it is malformed: then the components run again, and they are idempotent.
std::shared_ptr<const Summary> summary_from_json(const json::object& from) {
  Summary summary;
  summary.total = count_at(from, "total");
  summary.names = text_at(from, "names");
  auto completed = bits_from_text(text_at(from, "completed"), summary.total);
  if (!completed) return nullptr;
  summary.completed = std::move(*completed);
  auto failing = bits_from_text(text_at(from, "failing"), summary.total);
  summary.failing = failing ? std::move(*failing) : std::vector<bool>(summary.total);
  // Recounted: the status may have been edited.
  summary.done = static_cast<std::size_t>(std::count(summary.completed.begin(), summary.completed.end(), true));
  summary.failed = static_cast<std::size_t>(std::count(summary.failing.begin(), summary.failing.end(), true));
  return std::make_shared<const Summary>(std::move(summary));
}

constexpr std::array<std::string_view, 8> known_fields = {"done",  "startTime", "endTime", "failed",
                                                          "error", "fatal",     "state",   "summary"};

}  // namespace

json::object to_json(const State& state) {
  json::object out = state.extra;
  out["done"] = state.done;
  if (state.start_time) out["startTime"] = async::format_time(*state.start_time);
  if (state.end_time) out["endTime"] = async::format_time(*state.end_time);
  if (state.failed) out["failed"] = true;
  if (!state.error.empty()) out["error"] = state.error;
  if (state.fatal) out["fatal"] = true;
  if (state.summary != nullptr) out["summary"] = to_json(*state.summary);
  if (!state.components.empty()) {
    json::object components;
    for (const auto& [name, component] : state.components) components[name] = to_json(component);
    out["state"] = std::move(components);
  }
  return out;
}

json::object to_json(const States& states) {
  json::object out;
  for (const auto& [phase, state] : states) out[phase] = to_json(state);
  return out;
}

State state_from_json(const json::value& value) {
  State state;
  if (!value.is_object()) return state;
  const auto& from = value.get_object();
  state.done = flag_at(from, "done");
  state.failed = flag_at(from, "failed");
  state.fatal = flag_at(from, "fatal");
  state.start_time = time_at(from, "startTime");
  state.end_time = time_at(from, "endTime");
  state.error = text_at(from, "error");
  if (const auto* summary = from.if_contains("summary"); summary != nullptr && summary->is_object())
    state.summary = summary_from_json(summary->get_object());
  if (const auto* components = from.if_contains("state"); components != nullptr && components->is_object())
    for (const auto& [name, component] : components->get_object())
      state.components.emplace(name, state_from_json(component));
  for (const auto& [name, field] : from)
    if (std::find(known_fields.begin(), known_fields.end(), std::string_view{name}) == known_fields.end())
      state.extra.emplace(name, field);
  return state;
}

States states_from_json(const json::value& value) {
  States states;
  if (!value.is_object()) return states;
  for (const auto& [phase, state] : value.get_object())
    if (phase != leader_field) states.emplace(std::string{phase}, state_from_json(state));
  return states;
}

}  // namespace hubferry::phase
