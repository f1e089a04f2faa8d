#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"
#include "support/queue.hpp"

namespace hubferry::test {

/// An API server that answers lists and watches from a script, each after 10 ms. A call beyond the script's end
/// hangs until it is cancelled. What was asked is kept for the test to look at.
class ScriptedApi final : public kube::Api {
 public:
  using Batch = kube::Result<std::vector<kube::WatchEvent>>;
  using Feed = Queue<Batch>;

  struct Call {
    enum Kind { list, watch } kind;
    kube::ListOptions list_options;
    kube::WatchOptions watch_options;
    async::TimePoint at;
  };

  explicit ScriptedApi(async::Clock& clock) : clock_(clock) {}

  void will_list(kube::Result<kube::ListPage> answer) { lists_.push_back(std::move(answer)); }
  void will_list(std::string version, std::vector<kube::Decoded> items, std::string continue_token = {}) {
    kube::ListPage page;
    page.items = std::move(items);
    page.resource_version = std::move(version);
    page.continue_token = std::move(continue_token);
    lists_.emplace_back(std::move(page));
  }
  /// The next watch can be opened; what it brings is pushed into the feed.
  std::shared_ptr<Feed> will_watch() {
    auto feed = std::make_shared<Feed>(1000);
    watches_.emplace_back(feed);
    return feed;
  }
  void will_refuse_watch(kube::Error error) { watches_.emplace_back(std::move(error)); }

  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }
  /// "LWW": which calls came, in order.
  [[nodiscard]] std::string history() const {
    std::string text;
    for (const auto& call : calls_) text += call.kind == Call::list ? 'L' : 'W';
    return text;
  }
  [[nodiscard]] bool script_exhausted() const { return lists_.empty() && watches_.empty(); }
  [[nodiscard]] int open_streams() const { return *open_streams_; }

  kube::Awaitable<kube::Result<kube::Object>> call(kube::Request) override { co_return kube::Error{}; }
  kube::Awaitable<kube::Result<kube::json::value>> get_path(std::string) override { co_return kube::Error{}; }
  [[nodiscard]] std::string_view name() const override { return "scripted"; }

  kube::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource, kube::ListOptions options,
                                                     const kube::Decoder&) override {
    calls_.push_back({Call::list, std::move(options), {}, clock_.now()});
    co_await clock_.sleep_for(latency);
    if (lists_.empty()) co_await hang_.wait();
    auto answer = std::move(lists_.front());
    lists_.pop_front();
    co_return answer;
  }

  kube::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource, kube::WatchOptions options,
                                                                          const kube::Decoder&) override {
    calls_.push_back({Call::watch, {}, std::move(options), clock_.now()});
    co_await clock_.sleep_for(latency);
    if (watches_.empty()) co_await hang_.wait();
    auto answer = std::move(watches_.front());
    watches_.pop_front();
    if (!answer) co_return answer.error();
    co_return std::make_unique<Stream>(std::move(*answer), open_streams_);
  }

  static constexpr async::Duration latency = std::chrono::milliseconds{10};

 private:
  class Stream final : public kube::WatchStream {
   public:
    Stream(std::shared_ptr<Feed> feed, std::shared_ptr<int> open) : feed_(std::move(feed)), open_(std::move(open)) {
      ++*open_;
    }
    ~Stream() override { --*open_; }

    kube::Awaitable<Batch> next() override {
      auto batch = co_await feed_->pop();
      if (!batch) co_return std::vector<kube::WatchEvent>{};
      co_return std::move(*batch);
    }

   private:
    std::shared_ptr<Feed> feed_;
    std::shared_ptr<int> open_;
  };

  async::Clock& clock_;
  std::deque<kube::Result<kube::ListPage>> lists_;
  std::deque<kube::Result<std::shared_ptr<Feed>>> watches_;
  std::vector<Call> calls_;
  async::WaitList hang_;
  std::shared_ptr<int> open_streams_ = std::make_shared<int>(0);
};

}  // namespace hubferry::test
