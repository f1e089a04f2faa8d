#include "klusterlet/object_follower.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/resource_version.hpp"

namespace hubferry::klusterlet {

using async::Awaitable;

namespace {

kube::WatchPolicy policy() {
  kube::WatchPolicy policy;
  // One object is one short list: a stream of initial events saves nothing.
  policy.stream_initial = false;
  // All agents reconnect to a hub that comes back: spread them over a minute.
  policy.backoff.most = std::chrono::seconds{30};
  return policy;
}

}  // namespace

ObjectFollower::ObjectFollower(kube::Api& api, const kube::Resource& resource, kube::Key key,
                               const kube::Decoder& decoder, const kube::Env& env)
    : api_(api), resource_(resource), key_(std::move(key)), decoder_(decoder), env_(env), machine_(policy()) {}

Awaitable<ObjectFollower::Pointer> ObjectFollower::next() {
  while (true) {
    if (news_) {
      auto object = std::move(*news_);
      news_.reset();
      co_return object;
    }
    auto step = machine_.resume(report_.input, std::move(report_.facts), env_.clock.now(), env_.random);
    report_ = {};
    if (step.drop_stream) stream_.reset();
    if (std::holds_alternative<kube::ListNext>(step.action)) {
      co_await list();
    } else if (auto* request = std::get_if<kube::OpenWatch>(&step.action)) {
      co_await open(std::move(*request));
    } else if (std::holds_alternative<kube::ReadWatch>(step.action)) {
      co_await read();
    } else {
      co_await env_.clock.sleep_for(std::get<kube::Pause>(step.action).delay);
      report_.input = kube::WatchInput::pause_over;
    }
  }
}

std::string ObjectFollower::selector() const {
  return "metadata.name=" + key_.name;
}

Awaitable<> ObjectFollower::list() {
  if (!std::exchange(listed_, true) && start_) {
    report_.input = kube::WatchInput::last_page;
    report_.facts.resource_version = start_->resource_version;
    co_return;
  }
  start_.reset();
  kube::ListOptions options;
  options.ns = key_.ns;
  options.field_selector = selector();
  options.limit = 0;
  auto page = co_await api_.list(resource_, std::move(options), decoder_);
  if (!page) {
    const kube::Error error = page.error();
    if (on_state) on_state(&error);
    failed(error);
    co_return;
  }
  report_.input = kube::WatchInput::last_page;
  report_.facts.resource_version = std::move(page->resource_version);
  news_ = page->items.empty() ? nullptr : std::move(page->items.front().object);
}

Awaitable<> ObjectFollower::open(kube::OpenWatch request) {
  kube::WatchOptions options;
  options.ns = key_.ns;
  options.field_selector = selector();
  options.resource_version = std::move(request.resource_version);
  options.timeout = request.timeout;
  // If the watch expires, relisting one object is cheaper than a bookmark every minute.
  options.bookmarks = false;
  auto opened = co_await api_.watch(resource_, std::move(options), decoder_);
  if (!opened) {
    const kube::Error error = opened.error();
    // An expired version is listed again at once.
    if (on_state && error.kind != kube::ErrorKind::gone) on_state(&error);
    failed(error);
    co_return;
  }
  if (on_state) on_state(nullptr);
  stream_ = std::move(*opened);
  report_.input = kube::WatchInput::opened;
}

Awaitable<> ObjectFollower::read() {
  kube::Result<std::vector<kube::WatchEvent>> batch = std::vector<kube::WatchEvent>{};
  if (start_ && start_->longest_silence > async::Duration{0}) {
    const auto latest = async::later(env_.clock.now(), start_->longest_silence);
    auto come = co_await async::before_deadline(env_.clock, latest, stream_->next());
    if (!come) {
      report_.input = kube::WatchInput::gone;
      co_return;
    }
    batch = std::move(*come);
  } else {
    batch = co_await stream_->next();
  }
  if (batch)
    take(std::move(*batch));
  else
    failed(batch.error());
}

void ObjectFollower::take(std::vector<kube::WatchEvent> events) {
  report_.input = events.empty() ? kube::WatchInput::closed : kube::WatchInput::events;
  report_.facts.bookmarks_only = true;
  for (auto& event : events) {
    report_.facts.resource_version = event.decoded.resource_version;
    if (event.type == kube::WatchEventType::bookmark) continue;
    report_.facts.bookmarks_only = false;
    if (start_ && !start_->not_older_than.empty() &&
        !kube::is_at_least(event.decoded.resource_version, start_->not_older_than))
      continue;
    start_.reset();
    const bool gone = event.type == kube::WatchEventType::deleted;
    news_ = gone ? nullptr : std::move(event.decoded.object);
  }
}

void ObjectFollower::failed(const kube::Error& error) {
  report_.input = kube::cause_of(error);
  report_.facts.retry_after = error.retry_after;
  env_.log.debug("watching an object failed, retrying",
                 {{"resource", resource_.display_name()}, {"error", error.describe()}});
}

}  // namespace hubferry::klusterlet
