#include "ui/viewers.hpp"

#include "hubferry/async/deadline.hpp"

namespace hubferry::ui {

class Viewers::Stream final : public obs::HttpBodyStream {
 public:
  Stream(async::Clock& clock, Limits limits, std::shared_ptr<Queue> queue)
      : clock_(clock),
        silence_(limits.silence),
        end_(limits.longest > async::Duration{0} ? async::later(clock.now(), limits.longest) : async::never),
        queue_(std::move(queue)) {}

  async::Awaitable<std::optional<std::string>> next() override {
    const auto silent_until = std::min(end_, async::later(clock_.now(), silence_));
    while (queue_->events.empty() && !queue_->ended) {
      const bool changed = co_await async::before_deadline(clock_, silent_until, queue_->changed.wait());
      if (!changed) break;
    }
    // Also with events waiting: they belong to the next stream's snapshot.
    if (queue_->ended || clock_.now() >= end_) co_return std::nullopt;
    if (queue_->events.empty()) co_return ":\n\n";
    std::string all;
    for (const auto& event : queue_->events) all += *event;
    queue_->events.clear();
    queue_->bytes = 0;
    co_return all;
  }

 private:
  async::Clock& clock_;
  async::Duration silence_;
  async::TimePoint end_;
  std::shared_ptr<Queue> queue_;
};

Viewers::~Viewers() {
  for (const auto& weak : queues_)
    if (const auto queue = weak.lock()) {
      queue->ended = true;
      queue->changed.notify();
    }
}

std::unique_ptr<obs::HttpBodyStream> Viewers::join(std::string first) {
  std::erase_if(queues_, [](const auto& queue) { return queue.expired(); });
  if (queues_.size() >= limits_.viewers) return nullptr;
  auto queue = std::make_shared<Queue>();
  queue->events.push_back(std::make_shared<const std::string>(std::move(first)));
  queues_.push_back(queue);
  return std::make_unique<Stream>(clock_, limits_, std::move(queue));
}

void Viewers::publish(const std::string& event) {
  const auto shared = std::make_shared<const std::string>(event);
  std::erase_if(queues_, [](const auto& queue) { return queue.expired(); });
  for (const auto& weak : queues_) {
    const auto queue = weak.lock();
    if (queue->ended) continue;
    queue->bytes += event.size();
    queue->events.push_back(shared);
    if (queue->bytes > limits_.queued_bytes) {
      queue->ended = true;
      queue->events.clear();
    }
    queue->changed.notify();
  }
}

}  // namespace hubferry::ui
