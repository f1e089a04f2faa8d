#include "kube/control/event_correlator.hpp"

#include <algorithm>

#include "hubferry/async/clock.hpp"

namespace hubferry::kube {

namespace {

constexpr std::string_view combined_prefix = "(combined from similar events): ";

std::string object_id(const ObjectReference& regarding) {
  return regarding.api_version + "|" + regarding.kind + "|" + regarding.ns + "|" + regarding.name + "|" + regarding.uid;
}

EventCorrelator::SeriesId id_of(const Occurrence& what, const std::string& object, std::string note) {
  return {object, static_cast<int>(what.type), what.reason, what.action, std::move(note)};
}

std::string event_name(const ObjectReference& regarding, std::int64_t stamp) {
  // Object names have at most 253 bytes; those of RBAC objects may hold what other names may not.
  std::string name;
  for (const char c : regarding.name.substr(0, 236)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    name += plain ? c : '-';
  }
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  if (name.empty()) name = "event";
  static constexpr std::string_view digits = "0123456789abcdef";
  name += '.';
  const auto number = static_cast<std::uint64_t>(stamp);
  for (int shift = 60; shift >= 0; shift -= 4) name += digits[(number >> shift) & 15U];
  return name;
}

/// The entry of `key`, `fresh` where it is new; one that was used least recently goes where there are `most` others.
template <typename Key, typename Value>
Value& remembered(RecentMap<Key, Value>& map, const Key& key, Value fresh, std::size_t most) {
  if (auto* known = map.use(key)) return *known;
  if (map.size() >= most) map.give_up_one([](const Value&) { return true; });
  return map.insert(key, std::move(fresh));
}

bool is_settled(const EventSeries& series) {
  return !series.waiting && series.written == series.count;
}

}  // namespace

bool EventCorrelator::take_token(const std::string& object, TimePoint now) {
  auto& bucket = remembered(buckets_, object, Bucket{options_.object_burst, now}, options_.most_known);
  const double elapsed =
      std::chrono::duration<double>(now - bucket.filled_at) / std::chrono::duration<double>(options_.object_period);
  bucket.tokens = std::min(options_.object_burst, bucket.tokens + elapsed);
  bucket.filled_at = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

void EventCorrelator::combine_similar(Occurrence& occurrence, const std::string& object, TimePoint now) {
  auto& similar = remembered(similar_, id_of(occurrence, object, {}), Similar{}, options_.most_known);
  if (similar.notes.empty() || now - similar.since > options_.similar_window) {
    similar.notes.clear();
    similar.since = now;
  }
  // One beyond the limit is enough to know that it is exceeded.
  if (similar.notes.size() <= options_.similar_limit) similar.notes.insert(occurrence.note);
  if (similar.notes.size() <= options_.similar_limit) return;
  std::string note{combined_prefix};
  note += occurrence.note;
  occurrence.note = truncate_utf8(note, longest_note);
}

EventCorrelator::Outcome EventCorrelator::take(Occurrence occurrence, TimePoint now, async::WallTime wall) {
  const std::string object = object_id(occurrence.regarding);
  combine_similar(occurrence, object, now);
  // Combined events are one series, whatever their notes.
  const bool combined = occurrence.note.starts_with(combined_prefix);
  const SeriesId id = id_of(occurrence, object, combined ? std::string{combined_prefix} : occurrence.note);

  auto* known = series_.use(id);
  // A series with counts not yet written continues: ended here, they would be lost.
  if (known != nullptr && now - known->last_seen > options_.series_window && is_settled(*known)) {
    series_.erase(id);
    known = nullptr;
  }
  if (known != nullptr) {
    auto& series = *known;
    ++series.count;
    series.last = wall;
    series.last_seen = now;
    if (series.waiting || !take_token(object, now)) return {Verdict::counted, id};
    return {Verdict::write, id};
  }
  if (!take_token(object, now)) return {Verdict::rate_limited, id};
  if (series_.size() >= options_.most_known && !series_.give_up_one(is_settled)) return {Verdict::full, id};
  EventSeries series;
  last_stamp_ = std::max(last_stamp_ + 1, std::chrono::nanoseconds{wall.time_since_epoch()}.count());
  series.name = event_name(occurrence.regarding, last_stamp_);
  series.what = std::move(occurrence);
  series.first = series.last = wall;
  series.last_seen = now;
  series_.insert(id, std::move(series));
  return {Verdict::write, id};
}

std::vector<EventCorrelator::SeriesId> EventCorrelator::sweep(TimePoint now) {
  std::vector<SeriesId> unwritten;
  series_.erase_if([&](const SeriesId& id, const EventSeries& series) {
    if (now - series.last_seen <= options_.series_window || series.waiting) return false;
    if (!is_settled(series)) unwritten.push_back(id);
    return is_settled(series);
  });
  similar_.erase_if(
      [&](const SeriesId&, const Similar& similar) { return now - similar.since > options_.similar_window; });
  // A full bucket is as good as none.
  buckets_.erase_if([&](const std::string&, const Bucket& bucket) {
    const double missing = options_.object_burst - bucket.tokens;
    return now - bucket.filled_at >
           std::chrono::duration_cast<Duration>(options_.object_period * std::max(missing, 0.0));
  });
  return unwritten;
}

EventSeries* EventCorrelator::find(const SeriesId& id) {
  return series_.find(id);
}

namespace {

json::object series_of(const EventSeries& series) {
  return {{"count", series.count}, {"lastObservedTime", async::format_micro_time(series.last)}};
}

}  // namespace

json::object to_event(const EventSeries& series, const EventRecorderOptions& options, const std::string& ns) {
  const auto& what = series.what;
  json::object regarding{{"apiVersion", what.regarding.api_version}, {"kind", what.regarding.kind}};
  const std::pair<std::string_view, const std::string*> optional[] = {
      {"namespace", &what.regarding.ns},
      {"name", &what.regarding.name},
      {"uid", &what.regarding.uid},
      {"resourceVersion", &what.regarding.resource_version},
  };
  for (const auto& [field, value] : optional)
    if (!value->empty()) regarding[field] = *value;
  json::object event{
      {"metadata", json::object{{"namespace", ns}, {"name", series.name}}},
      {"eventTime", async::format_micro_time(series.first)},
      {"reportingController", options.controller},
      {"reportingInstance", options.instance},
      {"type", what.type == EventType::warning ? "Warning" : "Normal"},
      {"reason", what.reason},
      {"action", what.action},
      {"note", what.note},
      {"regarding", std::move(regarding)},
  };
  if (series.count > 1) event["series"] = series_of(series);
  return event;
}

json::object to_series_patch(const EventSeries& series) {
  return {{"series", series_of(series)}};
}

}  // namespace hubferry::kube
