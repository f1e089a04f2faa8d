#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/phase/components.hpp"
#include "hubferry/phase/optional_time.hpp"
#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

/// The State of a composite with more components than fit into a status: counts, and two bits per component.
struct Summary {
  std::size_t total = 0;
  std::size_t done = 0;
  std::size_t failed = 0;
  std::string names;            // a fingerprint of the components' names: the bits mean these and no others
  std::vector<bool> completed;  // in the order of the components
  std::vector<bool> failing;    // likewise

  bool operator==(const Summary&) const = default;
};

/// The accumulated result of all runs of one handler. It is stored in the resource's status, as JSON:
///   {"done": true, "startTime": "2030-01-01T00:00:00Z", "endTime": …, "failed": true, "error": "text",
///    "fatal": true, "state": {component name: State}}
/// Fields that are false or empty are left out, except `done`. Times are whole seconds.
struct State {
  bool done = false;
  bool failed = false;
  bool fatal = false;
  OptionalTime start_time;  // of the first run; absent: never ran
  OptionalTime end_time;    // when it was done, or failed
  std::string error;
  Components components;
  std::shared_ptr<const Summary> summary;  // only for composites beyond the limit
  json::object extra;                      // fields unknown to the framework: they are kept

  /// Done without an error: a component that is completed does not run again.
  [[nodiscard]] bool completed() const { return done && !failed; }
  [[nodiscard]] bool never_ran() const { return !start_time; }
  /// The component's State, or that of a handler that never ran.
  [[nodiscard]] const State& component(std::string_view name) const;

  bool operator==(const State& other) const;
};

/// `status.state`: the State of each phase's root handler. Beside them it has the leader that works on the resource
/// (see KubeStore), under a name that no phase may have.
using States = std::map<Phase, State>;
inline constexpr const char* leader_field = "leader";

json::object to_json(const State& state);
json::object to_json(const States& states);

/// Reads the output of to_json(), and whatever else people wrote there: a known field of a wrong type counts as absent,
/// an unknown one is kept in `extra`. Never throws.
State state_from_json(const json::value& value);
States states_from_json(const json::value& value);

/// At most this many bytes of an error's text are kept, whole characters.
inline constexpr std::size_t longest_error_text = 1024;
std::string shortened(std::string_view text, std::size_t limit = longest_error_text);

}  // namespace hubferry::phase
