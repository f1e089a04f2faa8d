#pragma once

#include <functional>

#include "hubferry/kube/api.hpp"

namespace hubferry::relocator::test {

/// Lets a test decide what becomes of each request about one object, and of its answer.
class InterceptingApi final : public kube::Api {
 public:
  using Intercept = std::function<async::Awaitable<kube::Result<kube::Object>>(kube::Api& real, kube::Request request)>;

  InterceptingApi(std::shared_ptr<kube::Api> real, Intercept intercept)
      : real_(std::move(real)), intercept_(std::move(intercept)) {}

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    return intercept_(*real_, std::move(request));
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
  std::shared_ptr<kube::Api> real_;
  Intercept intercept_;
};

}  // namespace hubferry::relocator::test
