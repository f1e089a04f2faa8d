#include "sim/apiserver/watch.hpp"

#include <boost/asio/deferred.hpp>

#include "hubferry/async/deadline.hpp"
#include "sim/apiserver/core.hpp"

namespace hubferry::sim {

namespace {

constexpr std::size_t most_items_at_once = 500;

/// Checks before it waits: an event that came before this coroutine's first turn woke no one.
async::Awaitable<> wait_for_events(std::shared_ptr<WatchBuffer> buffer) {
  while (buffer->pending.empty() && !buffer->ended && !buffer->overflowed) co_await buffer->waiters.wait();
}

}  // namespace

Watch::Watch(std::shared_ptr<Core> core, const Kind& kind, std::shared_ptr<WatchBuffer> buffer, Start start)
    : core_(std::move(core)),
      resource_(kind.resource),
      collection_(*kind.collection),
      stored_version_(kind.stored_version),
      view_(kind.view),
      buffer_(std::move(buffer)),
      start_(std::move(start)),
      ends_(async::later(core_->clock().now(), start_.timeout)),
      next_bookmark_(async::later(core_->clock().now(), core_->options().bookmark_interval)) {
  initial_done_ = start_.initial.empty() && !start_.end_with_bookmark;
}

Watch::~Watch() {
  collection_.remove_watch(*buffer_);
}

WatchItem Watch::bookmark(bool initial_events_end) const {
  const auto version = initial_events_end ? start_.version : core_->store().version();
  json::object metadata{{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}};
  if (initial_events_end) metadata["annotations"] = json::object{{"k8s.io/initial-events-end", "true"}};
  json::object object{
      {"kind", resource_.kind}, {"apiVersion", resource_.api_version()}, {"metadata", std::move(metadata)}};
  return {kube::WatchEventType::bookmark, kube::Object{std::move(object)}, initial_events_end};
}

Watch::Translated Watch::translate_pending() {
  Translated translated;
  const auto& selector = buffer_->selector();
  while (!buffer_->pending.empty() && translated.items.size() < most_items_at_once) {
    const EventPtr event = std::move(buffer_->pending.front());
    buffer_->pending.pop_front();
    if (!core_->faults.empty()) {
      const Faults::Seen seen{"watch", resource_.plural, {}, event->object.ns(), event->object.name()};
      const auto decision = core_->faults.decide_event(seen);
      if (decision.cut) {
        buffer_->cut();
        buffer_->pending.clear();
        return translated;
      }
      if (decision.drop) continue;
      translated.latency += decision.latency;
    }
    const bool all = selector.empty();
    const bool now = event->type != Event::Type::deleted && (all || selector.matches(event->object.json()));
    const bool before = event->type != Event::Type::added && (all || selector.matches(event->previous.json()));
    if (!now && !before) continue;
    auto type = kube::WatchEventType::modified;
    if (!before) type = kube::WatchEventType::added;
    if (!now) type = kube::WatchEventType::deleted;
    kube::Object object = event->object;
    if (!now && event->type == Event::Type::modified) {
      // It no longer matches the selector: the watcher gets the state that it knew, with the version of the change.
      json::object last = event->previous.json();
      last["metadata"].as_object()["resourceVersion"] = std::to_string(event->version);
      object = kube::Object{std::move(last)};
    }
    if (view_ != nullptr || resource_.version != stored_version_)
      object = in_version(resource_.api_version(), view_, object);
    translated.items.push_back({type, std::move(object), false});
  }
  return translated;
}

async::Awaitable<Outcome<std::vector<WatchItem>>> Watch::next() {
  if (start_.failure) co_return *start_.failure;
  auto& clock = core_->clock();
  while (true) {
    if (buffer_->ended || sent_last_) co_return std::vector<WatchItem>{};
    if (!initial_done_) {
      std::vector<WatchItem> items;
      while (sent_initial_ < start_.initial.size() && items.size() < most_items_at_once)
        items.push_back({kube::WatchEventType::added, std::move(start_.initial[sent_initial_++]), false});
      if (sent_initial_ == start_.initial.size()) {
        initial_done_ = true;
        start_.initial = {};
        if (start_.end_with_bookmark) items.push_back(bookmark(true));
      }
      co_return items;
    }
    if (buffer_->overflowed) co_return std::vector<WatchItem>{};
    if (!buffer_->pending.empty()) {
      auto translated = translate_pending();
      if (translated.latency > async::Duration{0}) {
        co_await clock.sleep_for(translated.latency);
      }
      if (!translated.items.empty()) co_return std::move(translated.items);
      continue;
    }
    const auto now = clock.now();
    if (now >= ends_) {
      sent_last_ = true;
      if (!start_.bookmarks) co_return std::vector<WatchItem>{};
      std::vector<WatchItem> last{bookmark(false)};
      co_return last;
    }
    if (start_.bookmarks && now >= next_bookmark_) {
      next_bookmark_ = async::later(now, core_->options().bookmark_interval);
      std::vector<WatchItem> items{bookmark(false)};
      co_return items;
    }
    const auto until = start_.bookmarks ? std::min(ends_, next_bookmark_) : ends_;
    co_await async::before_deadline(clock, until, wait_for_events(buffer_));
  }
}

}  // namespace hubferry::sim
