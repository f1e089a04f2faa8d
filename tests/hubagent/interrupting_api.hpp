#pragma once

#include <functional>
#include <optional>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::hubagent {

/// An Api that interrupts its caller: before the n-th request is sent, or after it took effect and before its answer
/// arrives.
class InterruptingApi final : public kube::Api {
 public:
  explicit InterruptingApi(kube::Api& inner) : inner_(inner) {}

  /// `interrupt` is called at that request, which then never returns.
  void interrupt_at(std::size_t number, bool after_effect, std::function<void()> interrupt) {
    calls_ = 0;
    moment_ = number;
    after_effect_ = after_effect;
    interrupt_ = std::move(interrupt);
  }
  void never_interrupt() { moment_.reset(); }

  /// Awaited before each request is sent; may be empty.
  std::function<async::Awaitable<>(const kube::Request&)> on_call;

  /// The error with which a request is answered instead of being sent; may be empty.
  std::function<std::optional<kube::Error>(const kube::Request&)> refuse;

  std::function<std::optional<kube::Error>(const std::string& path)> refuse_path;

  /// Of objects of this name lists have the name only, as of those that are nested too deep; may be empty.
  std::string unreadable;

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    if (on_call) co_await on_call(request);
    if (refuse)
      if (auto refused = refuse(request)) co_return *refused;
    const bool is_the_one = ++calls_ == moment_;
    if (is_the_one && !after_effect_) {
      interrupt_();
      co_await for_ever_.wait();
    }
    auto answer = co_await inner_.call(std::move(request));
    if (is_the_one) {
      interrupt_();
      co_await for_ever_.wait();
    }
    co_return answer;
  }
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                                      const kube::Decoder& decoder) override {
    auto page = co_await inner_.list(std::move(resource), std::move(options), decoder);
    if (page && !unreadable.empty())
      for (auto& item : page->items)
        if (item.key.name == unreadable) item.object.reset();
    co_return page;
  }
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                           kube::WatchOptions options,
                                                                           const kube::Decoder& decoder) override {
    return inner_.watch(std::move(resource), std::move(options), decoder);
  }
  async::Awaitable<kube::Result<kube::json::value>> get_path(std::string path) override {
    if (refuse_path)
      if (auto refused = refuse_path(path)) co_return *refused;
    co_return co_await inner_.get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return inner_.name(); }

 private:
  kube::Api& inner_;
  std::size_t calls_ = 0;
  std::optional<std::size_t> moment_;
  bool after_effect_ = false;
  std::function<void()> interrupt_;
  async::WaitList for_ever_;
};

}  // namespace hubferry::hubagent
