#pragma once

#include "hubferry/async/event.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::relocator::test {

/// Counts the writes to all servers together, and stops answering at the n-th: before it is sent, or after.
struct Death {
  enum class Moment { before, after };

  std::size_t at = 0;
  Moment moment = Moment::before;
  bool counts_events = false;
  std::size_t writes = 0;
  async::Event dead;
  async::Event buried;  // what still waits may end: a shielded request does not listen to cancellation
};

class DyingApi final : public kube::Api {
 public:
  DyingApi(std::shared_ptr<kube::Api> real, Death& death) : real_(std::move(real)), death_(death) {}

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    // A dead process sends nothing more.
    if (death_.dead.is_set()) co_return co_await die();
    const bool counts =
        request.verb != kube::Verb::get && (death_.counts_events || request.resource.plural != "events");
    const bool fatal = counts && ++death_.writes == death_.at;
    if (fatal && death_.moment == Death::Moment::before) co_return co_await die();
    auto answer = co_await real_->call(std::move(request));
    if (fatal) co_return co_await die();
    co_return answer;
  }
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions list_options,
                                                      const kube::Decoder& decoder) override {
    return real_->list(std::move(resource), std::move(list_options), decoder);
  }
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                           kube::WatchOptions watch_options,
                                                                           const kube::Decoder& decoder) override {
    return real_->watch(std::move(resource), std::move(watch_options), decoder);
  }
  async::Awaitable<kube::Result<kube::json::value>> get_path(std::string path) override {
    return real_->get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return real_->name(); }

 private:
  async::Awaitable<kube::Result<kube::Object>> die() {
    death_.dead.set();
    co_await death_.buried.wait();
    co_return kube::Error{kube::ErrorKind::unreachable, 0, {}, "the process is dead", {}};
  }

  std::shared_ptr<kube::Api> real_;
  Death& death_;
};

}  // namespace hubferry::relocator::test
