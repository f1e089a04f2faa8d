#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/obs/http_exchange.hpp"

namespace hubferry::ui {

/// Those who watch the page: each gets every event from when it joined, through a bounded queue. A viewer that does not
/// keep up is cut off; its page connects again and begins with a new snapshot.
/// Executor: one loop. Lifetime: streams may outlive it, and end with it.
class Viewers {
 public:
  struct Limits {
    std::size_t viewers = 32;
    std::size_t queued_bytes = 1024UL * 1024;  // for one viewer
    /// A comment is sent when there was nothing else for this long: proxies close silent connections.
    async::Duration silence = std::chrono::seconds{15};
    /// A stream is ended after this long, so that its credential is reviewed again; zero: never.
    async::Duration longest{0};
  };

  Viewers(async::Clock& clock, Limits limits) : clock_(clock), limits_(limits) {}
  Viewers(const Viewers&) = delete;
  Viewers& operator=(const Viewers&) = delete;
  ~Viewers();

  /// A stream that begins with `first`. Null: there are too many.
  std::unique_ptr<obs::HttpBodyStream> join(std::string first);
  void publish(const std::string& event);

  [[nodiscard]] std::size_t count() const { return queues_.size(); }

 private:
  struct Queue {
    std::deque<std::shared_ptr<const std::string>> events;
    std::size_t bytes = 0;
    bool ended = false;
    async::Notify changed;
  };
  class Stream;

  async::Clock& clock_;
  Limits limits_;
  std::list<std::weak_ptr<Queue>> queues_;
};

}  // namespace hubferry::ui
