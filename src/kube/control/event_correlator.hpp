#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "hubferry/kube/event_recorder.hpp"
#include "kube/control/recent_map.hpp"

namespace hubferry::kube {

/// What the API server takes of an Event's text.
inline constexpr std::size_t longest_note = 1024;

/// Something that happened, as reported to the recorder, with its texts cut to size.
struct Occurrence {
  ObjectReference regarding;
  EventType type = EventType::normal;
  std::string reason;
  std::string action;
  std::string note;
};

/// One Event object on the server, or one that will be.
struct EventSeries {
  Occurrence what;
  std::string name;         // of the Event object
  async::WallTime first{};  // eventTime
  async::WallTime last{};   // series.lastObservedTime
  TimePoint last_seen{};    // the same, on the monotonic clock
  int count = 1;
  int written = 0;       // the count that the server knows; 0: the Event does not exist yet
  bool waiting = false;  // in the recorder's buffer
};

/// Decides which occurrences become Events, which raise a count, and which are dropped. No I/O.
///
/// It remembers at most `most_known` each of series, objects and kinds of events, whatever happens; beyond that, the
/// least recently used are forgotten. Only a series with something left to write is not.
class EventCorrelator {
 public:
  using SeriesId = std::tuple<std::string, int, std::string, std::string, std::string>;

  enum class Verdict {
    write,         // the series wants to be written now
    counted,       // a repetition; it will be written with a later one or by due()
    rate_limited,  // too many events about this object
    full,          // too many series, all of them with something left to write
  };
  struct Outcome {
    Verdict verdict;
    SeriesId id;
  };

  explicit EventCorrelator(const EventRecorderOptions& options) : options_(options) {}

  Outcome take(Occurrence occurrence, TimePoint now, async::WallTime wall);

  /// Forgets what is over. Returns the series that ended with counts not yet written; forget() them after the write.
  std::vector<SeriesId> sweep(TimePoint now);
  void forget(const SeriesId& id) { series_.erase(id); }

  EventSeries* find(const SeriesId& id);
  /// Everything that is remembered.
  [[nodiscard]] std::size_t entries() const { return series_.size() + buckets_.size() + similar_.size(); }

 private:
  struct Bucket {
    double tokens;
    TimePoint filled_at;
  };
  struct Similar {
    std::set<std::string> notes;
    TimePoint since{};
  };

  bool take_token(const std::string& object, TimePoint now);
  void combine_similar(Occurrence& occurrence, const std::string& object, TimePoint now);

  const EventRecorderOptions& options_;
  /// Of the last Event's name: nanoseconds since 1970, as in client-go, and never the same twice. Servers list Events
  /// by name, and `kubectl describe` shows those without a lastTimestamp, which events.k8s.io/v1 does not allow, as
  /// listed.
  std::int64_t last_stamp_ = 0;
  RecentMap<SeriesId, EventSeries> series_;
  RecentMap<std::string, Bucket> buckets_;  // by object
  RecentMap<SeriesId, Similar> similar_;    // by all but the note
};

/// The JSON of a new Event in that namespace, and the merge patch that brings an existing one up to date.
json::object to_event(const EventSeries& series, const EventRecorderOptions& options, const std::string& ns);
json::object to_series_patch(const EventSeries& series);

}  // namespace hubferry::kube
