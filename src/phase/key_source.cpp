#include "hubferry/phase/key_source.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"

namespace hubferry::phase {

Awaitable<std::optional<Key>> MemoryKeySource::get() {
  for (;;) {
    take_due();
    if (!queue_.empty()) {
      Key key = std::move(queue_.front());
      queue_.pop_front();
      dirty_.erase(key);
      processing_.insert(key);
      co_return key;
    }
    if (closed_) co_return std::nullopt;
    const auto until = delayed_.empty() ? async::never : delayed_.begin()->first;
    co_await async::before_deadline(clock_, until, changed_.wait());
  }
}

void MemoryKeySource::done(const Key& key) {
  processing_.erase(key);
  if (!dirty_.contains(key)) return;
  queue_.push_back(key);
  changed_.notify();
}

void MemoryKeySource::add(Key key) {
  if (closed_ || !dirty_.insert(key).second) return;
  if (processing_.contains(key)) return;  // done() queues it
  queue_.push_back(std::move(key));
  changed_.notify();
}

void MemoryKeySource::add_after(Key key, async::Duration delay) {
  if (closed_) return;
  if (delay <= async::Duration::zero()) return add(std::move(key));
  delayed_.emplace(async::later(clock_.now(), delay), std::move(key));
  changed_.notify();
}

void MemoryKeySource::add_rate_limited(Key key) {
  const auto failures = std::min(failures_[key]++, 10U);
  add_after(std::move(key), std::chrono::milliseconds{5} * (1U << failures));
}

void MemoryKeySource::close() {
  closed_ = true;
  delayed_.clear();
  changed_.notify();
}

void MemoryKeySource::take_due() {
  while (!delayed_.empty() && delayed_.begin()->first <= clock_.now()) {
    auto node = delayed_.extract(delayed_.begin());
    add(std::move(node.mapped()));
  }
}

}  // namespace hubferry::phase
