#include "hubferry/async/deadline.hpp"
#include "kube/cache/cache_detail.hpp"
#include "kube/cache/collected.hpp"

// How a cache follows the server, and how others wait for what it learns.
namespace hubferry::kube {

namespace {

constexpr std::size_t most_series = 1000;

WatchMachine::Facts facts_of(const Error& error) {
  WatchMachine::Facts facts;
  facts.retry_after = error.retry_after;
  return facts;
}

}  // namespace

CacheCore::Instruments::Instruments(obs::Metrics& metrics, std::string_view server_name, std::string_view resource_name)
    : server(server_name),
      resource(resource_name),
      events(metrics
                 .counter_family("hubferry_watch_events_total", "Watch events received, bookmarks included.",
                                 {"server", "resource"}, most_series)
                 .with({server, resource})),
      restarts(metrics.counter_family("hubferry_watch_restarts_total", "Lists and watches restarted, by reason.",
                                      {"server", "resource", "reason"}, most_series)),
      objects(metrics.gauge_family("hubferry_cache_objects", "Objects in caches.", {"server", "resource"}, most_series)
                  .with({server, resource})),
      last_event(metrics
                     .gauge_family("hubferry_watch_last_event_timestamp_seconds",
                                   "When the server last sent anything, bookmarks included.", {"server", "resource"},
                                   most_series)
                     .with({server, resource})) {
  for (const auto* reason : {"closed", "failed", "gone"}) restarts.with({server, resource, reason});
}

CacheCore::CacheCore(Api& api, Resource resource, CacheOptions options, const Decoder& decoder, Env env)
    : api_(api),
      resource_(std::move(resource)),
      options_(std::move(options)),
      decoder_(decoder),
      env_(std::move(env)),
      instruments_(std::make_unique<Instruments>(env_.metrics, api.name(), resource_.display_name())),
      collected_(std::make_unique<Collected>()),
      last_event_(env_.clock.now()) {
  env_.log = env_.log.named("kube.cache").with("server", api.name()).with("resource", resource_.display_name());
}

CacheCore::~CacheCore() {
  ending_ = true;
}

Awaitable<> CacheCore::run() {
  WatchMachine machine{options_.watch, version_text_};
  std::unique_ptr<WatchStream> stream;
  Report report;
  // A list of a version of its own choice comes in one piece, which was refused, as too large. The newest comes in
  // pages.
  bool only_pages = false;
  while (true) {
    only_pages |= machine.state() == WatchState::listing && report.input == WatchInput::garbled;
    auto step = machine.resume(report.input, std::move(report.facts), env_.clock.now(), env_.random);
    if (step.drop_stream) stream.reset();
    if (step.begin) collected_->take();
    if (!step.restart.empty()) count_restart(step.restart, report.error, step.action);
    if (step.complete) {
      swap_in(machine.resource_version());
      env_.log.debug("list complete", {{"objects", objects_.size()}, {"resourceVersion", version_text_}});
    }
    instruments_->count(objects_.size());

    if (report.input == WatchInput::filled && !report.events.empty()) {
      // What came after the initial events in the same batch is already news.
      report.input = WatchInput::events;
    } else {
      if (auto* list = std::get_if<ListNext>(&step.action); list != nullptr && only_pages)
        list->resource_version.reset();
      report = co_await obey(std::move(step.action), stream);
    }
    if (report.input != WatchInput::events) continue;
    if (machine.state() == WatchState::filling)
      collect_events(report);
    else
      take_events(report);
  }
}

Awaitable<CacheCore::Report> CacheCore::obey(WatchAction action, std::unique_ptr<WatchStream>& stream) {
  if (auto* list = std::get_if<ListNext>(&action)) return list_page(std::move(*list));
  if (auto* open = std::get_if<OpenWatch>(&action)) return open_watch(std::move(*open), stream);
  if (auto* read = std::get_if<ReadWatch>(&action)) return read_watch(*read, *stream);
  return pause(std::get<Pause>(action));
}

Awaitable<CacheCore::Report> CacheCore::list_page(ListNext next) {
  ListOptions options;
  options.ns = options_.ns;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  options.limit = next.limit;
  options.continue_token = std::move(next.continue_token);
  options.resource_version = std::move(next.resource_version);
  if (options.resource_version && *options.resource_version != "0") options.resource_version_match = "NotOlderThan";
  const std::string asked = options.continue_token;
  auto page = co_await api_.list(resource_, std::move(options), decoder_);
  if (page && !asked.empty() && page->continue_token == asked)
    page = Error{ErrorKind::bad_response, 0, {}, "the list repeats its continue token", std::nullopt};

  Report report;
  if (!page) {
    report.input = cause_of(page.error());
    report.facts = facts_of(page.error());
    report.error = page.error();
    collected_->take();
    co_return report;
  }
  heard_from_server(0);
  for (auto& item : page->items) collected_->add(std::move(item));
  if (exceeds_limits(collected_->size(), collected_->bytes())) {
    refuse(report, "the list is too large");
    collected_->take();
    co_return report;
  }
  report.input = page->continue_token.empty() ? WatchInput::last_page : WatchInput::page;
  report.facts.resource_version = std::move(page->resource_version);
  report.facts.continue_token = std::move(page->continue_token);
  co_return report;
}

Awaitable<CacheCore::Report> CacheCore::open_watch(OpenWatch next, std::unique_ptr<WatchStream>& stream) {
  WatchOptions options;
  options.ns = options_.ns;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  options.resource_version = std::move(next.resource_version);
  options.timeout = next.timeout;
  options.send_initial_events = next.send_initial_events;
  auto opened = co_await api_.watch(resource_, std::move(options), decoder_);

  Report report;
  if (opened) {
    report.input = WatchInput::opened;
    stream = std::move(*opened);
  } else {
    report.input = cause_of(opened.error());
    report.facts = facts_of(opened.error());
    report.error = opened.error();
  }
  co_return report;
}

Awaitable<CacheCore::Report> CacheCore::read_watch(ReadWatch next, WatchStream& stream) {
  Report report;
  Result<std::vector<WatchEvent>> batch = std::vector<WatchEvent>{};
  if (next.silence == Duration{0}) {
    batch = co_await stream.next();
  } else {
    const TimePoint deadline = async::later(env_.clock.now(), next.silence);
    auto in_time = co_await async::before_deadline(env_.clock, deadline, stream.next());
    if (!in_time) {
      report.input = WatchInput::refused;
      co_return report;
    }
    batch = std::move(*in_time);
  }
  if (!batch) {
    report.input = cause_of(batch.error());
    report.facts = facts_of(batch.error());
    report.error = batch.error();
  } else {
    report.input = batch->empty() ? WatchInput::closed : WatchInput::events;
    report.events = std::move(*batch);
  }
  co_return report;
}

Awaitable<CacheCore::Report> CacheCore::pause(Pause next) {
  co_await env_.clock.sleep_for(next.delay);
  Report report;
  report.input = WatchInput::pause_over;
  co_return report;
}

void CacheCore::heard_from_server(std::size_t events) {
  last_event_ = env_.clock.now();
  events_ += events;
  instruments_->events.increment(static_cast<double>(events));
  instruments_->last_event.set(std::chrono::duration<double>(env_.clock.wall_now().time_since_epoch()).count());
}

void CacheCore::refuse(Report& report, std::string_view why) {
  report.error = Error{ErrorKind::bad_response, 0, {}, std::string{why}, std::nullopt};
  report.input = cause_of(*report.error);
  report.facts = facts_of(*report.error);
  report.events.clear();
}

bool CacheCore::exceeds_limits(std::size_t objects, std::size_t bytes) const {
  return objects > options_.limits.objects || bytes > options_.limits.bytes;
}

void CacheCore::take_events(Report& report) {
  heard_from_server(report.events.size());
  for (auto& event : report.events) apply(event);
  report.events.clear();
  if (exceeds_limits(objects_.size(), bytes_)) return refuse(report, "the watch brings too much");
  report.facts.resource_version = version_text_;
}

void CacheCore::collect_events(Report& report) {
  report.facts.bookmarks_only = true;
  auto event = report.events.begin();
  for (; event != report.events.end(); ++event) {
    if (event->initial_events_end) {
      report.input = WatchInput::filled;
      report.facts.resource_version = std::move(event->decoded.resource_version);
      ++event;
      break;
    }
    if (event->type == WatchEventType::bookmark) continue;
    report.facts.bookmarks_only = false;
    // Each object is to be in the list once.
    if (event->type != WatchEventType::added) collected_->remove(event->decoded.key);
    if (event->type != WatchEventType::deleted) collected_->add(std::move(event->decoded));
  }
  heard_from_server(static_cast<std::size_t>(event - report.events.begin()));
  report.events.erase(report.events.begin(), event);
  if (!exceeds_limits(collected_->size(), collected_->bytes())) return;
  refuse(report, "the initial events are too many");
  collected_->take();
}

void CacheCore::count_restart(std::string_view restart, const std::optional<Error>& error, const WatchAction& next) {
  instruments_->restarted(restart);
  const auto* waits = std::get_if<Pause>(&next);
  const Duration delay = waits != nullptr ? waits->delay : Duration{0};
  if (!error) {
    env_.log.debug("watch closed, resuming", {{"reason", restart}, {"delay", delay}});
    return;
  }
  // These do not recover on their own: an operator must act.
  const bool lasting = error->kind == ErrorKind::forbidden || error->kind == ErrorKind::unauthorized ||
                       error->kind == ErrorKind::not_found || error->kind == ErrorKind::bad_response;
  const auto level = restart == "no_stream" ? obs::Level::debug : lasting ? obs::Level::warn : obs::Level::info;
  env_.log.log(level, "list or watch failed, retrying",
               {{"reason", restart}, {"error", error->describe()}, {"delay", delay}});
}

/// Registers a waiter for one key or version; the last one to leave removes the list.
template <typename Map>
class CacheCore::WaiterSlot {
 public:
  WaiterSlot(const bool& ending, Map& map, const typename Map::key_type& key)
      : ending_(ending), map_(map), entry_(*map.try_emplace(key).first) {
    ++entry_.second.users;
  }
  WaiterSlot(const WaiterSlot&) = delete;
  WaiterSlot& operator=(const WaiterSlot&) = delete;
  ~WaiterSlot() {
    if (ending_ || --entry_.second.users > 0) return;
    const auto key = entry_.first;
    map_.erase(key);
  }

  auto wait() { return entry_.second.list.wait(); }

 private:
  const bool& ending_;
  Map& map_;
  typename Map::value_type& entry_;
};

Awaitable<CacheCore::Pointer> CacheCore::wait_for(Key key, Predicate predicate, TimePoint deadline) {
  if (synced()) {
    auto object = get(key);
    if (predicate(object.get())) co_return object;
  }
  auto change = wait_for_change(std::move(key), std::move(predicate));
  co_return co_await async::with_deadline(env_.clock, deadline, std::move(change));
}

Awaitable<CacheCore::Pointer> CacheCore::wait_for_change(Key key, Predicate predicate) {
  co_await synced_.wait();
  WaiterSlot slot{ending_, key_waiters_, key};
  while (true) {
    auto object = get(key);
    if (predicate(object.get())) co_return object;
    co_await slot.wait();
  }
}

bool CacheCore::has_seen(const Key& key, std::string_view resource_version) const {
  const std::uint64_t version = resource_version_number(resource_version);
  if (!synced() || version == 0) return false;
  // Events arrive in the order of versions: beyond this version, the write has been seen even if the object is gone.
  if (version_ >= version) return true;
  const auto found = objects_.find(key);
  return found != objects_.end() && found->second.version >= version;
}

Awaitable<> CacheCore::wait_until_seen(Key key, std::string resource_version, TimePoint deadline) {
  if (has_seen(key, resource_version)) co_return;
  auto change = wait_for_version(resource_version_number(resource_version));
  co_await async::with_deadline(env_.clock, deadline, std::move(change));
}

Awaitable<> CacheCore::wait_for_version(std::uint64_t version) {
  co_await synced_.wait();
  if (version == 0) version = ~std::uint64_t{0};  // no number: never
  WaiterSlot slot{ending_, version_waiters_, version};
  while (version_ < version) co_await slot.wait();
}

}  // namespace hubferry::kube
