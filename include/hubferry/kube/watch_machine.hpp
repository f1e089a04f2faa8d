#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "hubferry/async/backoff.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::kube {

/// Keeping a copy of a collection: list, then watch, forever. Decides what to do next; does nothing itself.
///
///                             +------------------- gone ----------------------+
///              more pages     v                                               |
///   idle ----> listing --last page--> opening --opened--> reading --closed----+--> opening
///    |            |  ^                 |   ^                 |                     (resumes)
///    |          failed  pause over   failed  pause over    failed, or closed too soon
///    |            v  |                 v   |                 |
///    |         list_pause            watch_pause <-----------+
///    |            |  ^
///    v            v  | failed
///   streaming (asked for all objects as a stream: WatchList) --opened--> filling --all there--> reading
///            \______ the server cannot, or breaks it off: listing, now and from then on _____/
enum class WatchState : std::uint8_t {
  idle,         // nothing asked yet
  listing,      // a page was asked for
  list_pause,   // waiting before the collection is asked for again
  streaming,    // a watch that begins with all objects was asked for
  filling,      // such a watch is open, its initial events are coming
  opening,      // a watch from the last version was asked for
  reading,      // that watch is open
  watch_pause,  // waiting before it is asked for again
};

/// What has happened. cause_of() maps an error to one of these.
enum class WatchInput : std::uint8_t {
  start,       // begin
  page,        // a page came, more will follow
  last_page,   // the list is complete
  opened,      // the watch is open
  events,      // events or bookmarks came
  filled,      // the bookmark that ends the initial events came
  closed,      // the server ended the watch in good order
  gone,        // 410, or a version that the server does not know yet: only a fresh list helps
  refused,     // the server does not do what was asked
  failed,      // anything else: unreachable, forbidden, overloaded …
  garbled,     // what came is not Kubernetes: asking for the same again would give the same
  pause_over,  // the pause has passed
};

std::string_view to_string(WatchState state);
std::string_view to_string(WatchInput input);

/// The input that an error amounts to: gone, refused, garbled or failed.
WatchInput cause_of(const Error& error);

struct WatchPolicy {
  async::BackoffPolicy backoff;  // its defaults are client-go's: 0.8 s to 30 s, jitter 1, calm after 2 min
  /// The server is asked to end the watch after a time drawn from [shortest, longest): so that many clients do not
  /// come back together, and load spreads over servers behind one address.
  async::Duration shortest_watch = std::chrono::minutes{5};
  async::Duration longest_watch = std::chrono::minutes{10};
  /// A watch that ends sooner is a failure, whatever it has sent: else a broken server is asked in a busy loop.
  async::Duration too_short = std::chrono::seconds{1};
  int page_size = 500;
  /// Ask for the initial objects as a stream; servers that cannot are asked for a list.
  bool stream_initial = true;
  /// A stream of initial events that is silent for this long is no such stream: a server may ignore sendInitialEvents.
  async::Duration silence_while_filling = std::chrono::seconds{15};
};

/// Ask for one page of the collection.
struct ListNext {
  std::optional<std::string> resource_version;  // as in ListOptions
  std::string continue_token;
  int limit = 0;
};
/// Open a watch.
struct OpenWatch {
  std::string resource_version;
  async::Duration timeout{0};
  bool send_initial_events = false;
};
/// Read from the open watch; fail with WatchInput::refused after `silence`, when it is not zero.
struct ReadWatch {
  async::Duration silence{0};
};
/// Wait, then report pause_over.
struct Pause {
  async::Duration delay{0};
};

using WatchAction = std::variant<ListNext, OpenWatch, ReadWatch, Pause>;

struct WatchStep {
  WatchAction action;
  /// A new list begins: objects are collected aside until `complete`.
  bool begin = false;
  /// All of it is there: swap it in, before the action.
  bool complete = false;
  /// The open stream, if any, is of no more use: drop it before the action.
  bool drop_stream = false;
  /// Why list or watch had to be begun again; empty when this is the normal course. A fixed set of values: a metric
  /// label.
  std::string_view restart;
};

/// Deterministic: the same inputs at the same times with the same random seed give the same steps.
/// An input that the state does not know throws std::logic_error: it is a bug of the caller.
class WatchMachine {
 public:
  /// One allowed step. The table is the specification; a test checks that every row is taken.
  struct Transition {
    WatchState from;
    WatchInput input;
    WatchState to;
  };
  static constexpr std::size_t most_transitions = 42;
  static std::span<const Transition> transitions();

  /// With a `resource_version`, a previous run's last: the first list must not be older.
  explicit WatchMachine(WatchPolicy policy, std::string resource_version = {});

  /// What came with an input.
  struct Facts {
    std::string resource_version;                // of a list, or the last of a batch of events; empty: unchanged
    std::string continue_token;                  // of a page
    bool bookmarks_only = false;                 // events: no object among them
    std::optional<async::Duration> retry_after;  // of a failure
  };
  WatchStep resume(WatchInput input, Facts facts, async::TimePoint now, async::Random& random);

  [[nodiscard]] WatchState state() const { return state_; }
  /// Where a watch would resume. Empty before the first list is complete.
  [[nodiscard]] const std::string& resource_version() const { return resource_version_; }
  /// Which rows of transitions() were taken.
  [[nodiscard]] const std::bitset<most_transitions>& taken() const { return taken_; }

 private:
  void move_to(WatchState to, WatchInput input);
  WatchStep fetch(std::string_view restart);
  WatchStep list_page(std::string continue_token);
  WatchStep open(std::string_view restart, async::TimePoint now, async::Random& random);
  WatchStep read() const;
  WatchStep pause(std::string_view restart, const Facts& facts, async::TimePoint now, async::Random& random);
  WatchStep on_listing(WatchInput input, Facts& facts, async::TimePoint now, async::Random& random);
  WatchStep on_filling(WatchInput input, Facts& facts, async::TimePoint now, async::Random& random);
  WatchStep on_watching(WatchInput input, Facts& facts, async::TimePoint now, async::Random& random);
  async::Duration watch_timeout(async::Random& random) const;

  WatchPolicy policy_;
  WatchState state_ = WatchState::idle;
  std::string resource_version_;
  bool stream_initial_;
  bool newest_ = false;     // the next list must be a quorum read: a version has proved unusable
  bool unpaged_ = false;    // the next list must come in one piece: a paged one fell apart
  bool continued_ = false;  // the page asked for is not the list's first
  async::TimePoint opened_at_{};
  std::optional<async::TimePoint> last_gone_;  // a watch's last 410
  unsigned failures_ = 0;
  async::TimePoint last_failure_{};
  std::bitset<most_transitions> taken_;
};

}  // namespace hubferry::kube
