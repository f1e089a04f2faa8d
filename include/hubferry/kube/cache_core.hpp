#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/watch_machine.hpp"

namespace hubferry::kube {

/// Beyond these a collection is a fault of the server, or an attack: memory must have a bound.
struct CacheLimits {
  std::size_t objects = 1'000'000;
  std::size_t bytes = std::size_t{1} << 30U;  // as they were sent
};

struct CacheOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  WatchPolicy watch;
  CacheLimits limits;
};

/// How fresh a cache is.
struct CacheStatus {
  bool synced = false;
  std::size_t objects = 0;
  std::string resource_version;  // what the cache reflects; empty before the first list
  Duration last_event_age{0};    // since the server last sent anything, bookmarks included
  std::uint64_t events = 0;
  std::uint64_t relists = 0;  // complete lists after the first
};

/// Keeps a handler subscribed; destroying it ends that, also from inside of a handler. May outlive the cache.
class [[nodiscard]] CacheSubscription {
 public:
  struct Slot;
  CacheSubscription() = default;
  explicit CacheSubscription(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
  CacheSubscription(CacheSubscription&& other) noexcept = default;
  CacheSubscription& operator=(CacheSubscription&& other) noexcept;
  ~CacheSubscription() { reset(); }

  void reset();

 private:
  std::shared_ptr<Slot> slot_;
};

/// What a new subscriber is notified of first.
enum class Replay {
  nothing,   // changes from now on
  existing,  // every object there is, as if it were new, before subscribe() returns
};

/// The untyped part of a Cache: holds the objects, notifies handlers and waiters, and follows a WatchMachine.
///
/// Readers see one state of the collection at a time: a list is collected aside and swapped in at once, with
/// whatever was there before visible until then. It may lag behind the server; see wait_until_seen().
/// Objects are immutable; readers may keep them as long as they like.
/// Handlers run after the whole change is visible, once per object that differs (by resourceVersion): a list that
/// brings nothing new causes no notification, one that lacks an object reports its deletion. They are called in turn,
/// must not block, and end run() with what they throw. Executor: everything on one loop; the API's work is done on the
/// API's own. Cancellation: terminal, at every await. run() may be called again afterwards and resumes from what is
/// known. Errors: run() never returns on its own; failures are logged, counted and retried. Lifetime: outlives run()
/// and all waiters.
class CacheCore {
 public:
  using Pointer = std::shared_ptr<const void>;
  using Handler = std::function<void(const Key& key, const Pointer& old, const Pointer& now)>;
  using Predicate = std::function<bool(const void* object)>;
  using IndexFunction = std::function<std::vector<std::string>(const void* object)>;

  CacheCore(Api& api, Resource resource, CacheOptions options, const Decoder& decoder, Env env);
  CacheCore(const CacheCore&) = delete;
  CacheCore& operator=(const CacheCore&) = delete;
  ~CacheCore();

  Awaitable<> run();

  [[nodiscard]] Pointer get(const Key& key) const;
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  /// `visit` may do everything but wait.
  void for_each(const std::function<void(const Key&, const Pointer&)>& visit) const;
  /// True from the first complete list on, forever.
  [[nodiscard]] bool synced() const { return synced_.is_set(); }
  Awaitable<> wait_synced() { return synced_.wait(); }
  [[nodiscard]] CacheStatus status() const;

  CacheSubscription subscribe(Handler handler, Replay replay);

  /// Files every object, present and future, under the values that the function gives for it.
  void add_index(std::string name, IndexFunction values);
  /// The objects filed under `value`, in no order. Throws std::logic_error when there is no such index.
  [[nodiscard]] std::vector<Pointer> lookup(std::string_view index, const std::string& value) const;

  /// Waits for the first list, then until `predicate` holds for the object, or for null when there is none; returns
  /// what it held for. It is asked at once and again after each change of that object, never in between; of changes
  /// that come together it sees the last. Throws the timeout of async::with_deadline(), unless it holds already.
  Awaitable<Pointer> wait_for(Key key, Predicate predicate, TimePoint deadline);

  /// True if the cache reflects the write to `key` that returned this version. A later deletion counts, too.
  /// Versions are compared as numbers, which holds within one resource of one server; a version that is no number is
  /// never seen.
  [[nodiscard]] bool has_seen(const Key& key, std::string_view resource_version) const;
  /// Waits for has_seen(), so that no decision is based on a state from before our own last write.
  Awaitable<> wait_until_seen(Key key, std::string resource_version, TimePoint deadline);

 private:
  struct Entry {
    Pointer object;
    std::uint64_t version = 0;     // 0: not a number
    std::uint32_t generation = 0;  // of the list that brought or confirmed it
    std::uint32_t bytes = 0;       // as it was sent
  };
  using Objects = std::unordered_map<Key, Entry>;
  struct Change {
    Key key;
    Pointer old;
    Pointer now;
  };
  struct Index {
    IndexFunction values;
    std::unordered_map<std::string, std::unordered_set<const Objects::value_type*>> objects;
  };
  /// Waiters for one key or version; kept while there are any.
  struct Waiters {
    async::WaitList list;
    std::size_t users = 0;
  };
  template <typename Map>
  class WaiterSlot;
  /// What came of an action: the machine's next input, and what belongs to it.
  struct Report {
    WatchInput input = WatchInput::start;
    WatchMachine::Facts facts;
    std::optional<Error> error;
    std::vector<WatchEvent> events;  // not applied yet
  };
  struct Instruments;
  class Collected;

  Awaitable<Report> obey(WatchAction action, std::unique_ptr<WatchStream>& stream);
  Awaitable<Report> list_page(ListNext next);
  Awaitable<Report> open_watch(OpenWatch next, std::unique_ptr<WatchStream>& stream);
  Awaitable<Report> read_watch(ReadWatch next, WatchStream& stream);
  Awaitable<Report> pause(Pause next);
  void count_restart(std::string_view restart, const std::optional<Error>& error, const WatchAction& next);

  void heard_from_server(std::size_t events);
  void take_events(Report& report);
  void collect_events(Report& report);
  /// The collection is not read any further: the report becomes an error.
  static void refuse(Report& report, std::string_view why);
  [[nodiscard]] bool exceeds_limits(std::size_t objects, std::size_t bytes) const;
  void apply(WatchEvent& event);
  void swap_in(const std::string& resource_version);
  void advance(std::uint64_t version, const std::string& text);

  void put(Decoded item, std::uint64_t version);
  void replace(Objects::value_type& entry, Decoded item, std::uint64_t version);
  Change take_out(Objects::iterator at);
  void file(const Objects::value_type& entry);
  void unfile(const Objects::value_type& entry);
  void notify(const Change& change, std::uint64_t number);

  Awaitable<Pointer> wait_for_change(Key key, Predicate predicate);
  Awaitable<> wait_for_version(std::uint64_t version);

  Api& api_;
  Resource resource_;
  CacheOptions options_;
  const Decoder& decoder_;
  Env env_;
  std::unique_ptr<Instruments> instruments_;

  Objects objects_;
  std::map<std::string, Index, std::less<>> indexes_;
  std::vector<std::shared_ptr<CacheSubscription::Slot>> subscribers_;
  std::uint64_t changes_ = 0;  // visible so far: subscribers are notified of those after they subscribed

  std::uint64_t bytes_ = 0;               // of all objects
  std::unique_ptr<Collected> collected_;  // a list that is not complete yet
  std::uint32_t generation_ = 0;
  std::uint64_t version_ = 0;  // everything up to here is reflected
  std::string version_text_;
  async::Event synced_;
  TimePoint last_event_{};
  std::uint64_t events_ = 0;
  std::uint64_t relists_ = 0;

  bool ending_ = false;  // being destroyed: waiters no longer deregister
  std::unordered_map<Key, Waiters> key_waiters_;
  std::map<std::uint64_t, Waiters> version_waiters_;
};

}  // namespace hubferry::kube
