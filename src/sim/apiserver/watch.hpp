#pragma once

#include <memory>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "sim/apiserver/kinds.hpp"
#include "sim/apiserver/status_error.hpp"
#include "sim/apiserver/store.hpp"

namespace hubferry::sim {

class Core;

struct WatchItem {
  kube::WatchEventType type;
  kube::Object object;
  bool initial_events_end = false;
};

/// The server side of an open watch: the HTTP frontend and the direct API read it and forward its events.
class Watch {
 public:
  struct Start {
    std::vector<kube::Object> initial;  // sent as ADDED
    bool end_with_bookmark = false;     // after them: k8s.io/initial-events-end
    std::int64_t version = 0;
    std::optional<StatusError> failure;  // sent in the stream as an ERROR event
    bool bookmarks = false;
    async::Duration timeout{0};
  };

  Watch(std::shared_ptr<Core> core, const Kind& kind, std::shared_ptr<WatchBuffer> buffer, Start start);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// The next items; none at the end of the stream: by its timeout, because the server cut it, or because the reader
  /// was too slow. Errors: that of an ERROR event.
  async::Awaitable<Outcome<std::vector<WatchItem>>> next();
  /// The reader has disconnected: next() returns.
  void cut() { buffer_->cut(); }
  /// True if it was cut, as a broken connection.
  [[nodiscard]] bool broken() const { return buffer_->ended; }

 private:
  struct Translated {
    std::vector<WatchItem> items;
    async::Duration latency{0};
  };
  Translated translate_pending();
  [[nodiscard]] WatchItem bookmark(bool initial_events_end) const;

  std::shared_ptr<Core> core_;
  kube::Resource resource_;
  Collection& collection_;
  std::string stored_version_;
  const View* view_;
  std::shared_ptr<WatchBuffer> buffer_;
  Start start_;
  std::size_t sent_initial_ = 0;
  bool initial_done_ = false;
  bool sent_last_ = false;
  async::TimePoint ends_;
  async::TimePoint next_bookmark_;
};

}  // namespace hubferry::sim
