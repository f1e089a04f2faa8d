#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::kube {

/// corev1.ObjectReference: what an event is about.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;

  bool operator==(const ObjectReference&) const = default;
};

ObjectReference reference_to(const Resource& resource, const Object& object);

enum class EventType { normal, warning };

struct EventRecorderOptions {
  std::string controller;  // reportingController: a qualified name such as "example.io/mover"
  std::string instance;    // reportingInstance: the pod's name

  /// The same event again within this time of the last one only raises the series' count.
  Duration series_window = std::chrono::minutes{6};
  /// More than this many events that differ in their note only, within similar_window, become one series.
  std::size_t similar_limit = 10;
  Duration similar_window = std::chrono::minutes{10};
  /// Writes per object: this many at once, then one in each period.
  double object_burst = 25;
  Duration object_period = std::chrono::minutes{5};

  std::size_t most_waiting = 1000;  // to be written; beyond that, events are dropped
  std::size_t most_known = 4096;    // series and objects remembered for counting and limiting
  unsigned attempts = 8;            // for an event that the server cannot take now
};

/// Reports to users what happens to their objects: events.k8s.io/v1, aggregated, rate-limited, never blocking.
///
/// event() only records; run() writes. An event that does not fit, exceeds its object's rate, or is refused by the
/// server is dropped and counted in event_recorder_dropped_total{reason="full"|"rate"|"rejected"|"unreachable"}.
/// Repetitions are never dropped for their rate: they are counted, and the count is written as soon as the rate allows,
/// at the latest when the series ends.
///
/// Lifetime: outlives run(). Executor: one loop. Cancellation of run(): terminal; what waits is not written.
class EventRecorder {
 public:
  EventRecorder(Api& api, EventRecorderOptions options, Env env);
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  ~EventRecorder();

  /// `reason`: a CamelCase word why, `action`: one for what was done; both cut at 128 bytes. `note`: a message for
  /// people, cut at 1024 bytes; it must not hold secrets.
  void event(const ObjectReference& regarding, EventType type, std::string_view reason, std::string_view action,
             std::string_view note);

  /// Writes events until cancelled.
  Awaitable<> run();
  /// Returns when nothing waits to be written; run() must be running.
  Awaitable<> flushed();

  [[nodiscard]] std::size_t waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The first `most` bytes of `text`, or a few less so as not to cut a UTF-8 sequence.
std::string_view truncate_utf8(std::string_view text, std::size_t most);

}  // namespace hubferry::kube
