#include "hubferry/kube/work_queue.hpp"
#include "hubferry/phase/key_source.hpp"

namespace hubferry::phase {

Awaitable<std::optional<Key>> WorkQueueSource::get() {
  return queue_.get();
}

void WorkQueueSource::done(const Key& key) {
  queue_.done(key);
}

void WorkQueueSource::add(Key key) {
  queue_.add(std::move(key));
}

void WorkQueueSource::add_after(Key key, async::Duration delay) {
  queue_.add_after(std::move(key), delay);
}

void WorkQueueSource::add_rate_limited(Key key) {
  queue_.add_rate_limited(std::move(key));
}

void WorkQueueSource::forget(const Key& key) {
  queue_.forget(key);
}

}  // namespace hubferry::phase
