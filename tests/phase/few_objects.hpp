#pragma once

#include <gtest/gtest.h>

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <functional>

#include "hubferry/kube/api.hpp"
#include "hubferry/phase/kube_store.hpp"

namespace hubferry::phase::test {

/// An API server that supports what a status write needs.
class FewObjects final : public kube::Api {
 public:
  std::map<Key, json::object> objects;
  std::vector<json::object> patches;
  unsigned gets = 0;
  std::function<std::optional<kube::Error>(const kube::Request&)> before;
  std::function<std::optional<kube::Error>(const kube::Request&)> after;

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    co_await async::asio::post(async::asio::deferred);  // the request takes a turn of the loop
    if (before)
      if (auto error = before(request)) co_return *error;
    const auto found = objects.find(request.key);
    if (request.verb == kube::Verb::get) ++gets;
    if (found == objects.end()) co_return failure(kube::ErrorKind::not_found);
    if (request.verb == kube::Verb::patch) {
      EXPECT_EQ(request.subresource, "status");
      const auto& patch = request.body.as_object();
      const auto& metadata = found->second["metadata"].as_object();
      if (patch.at("metadata").at("resourceVersion") != metadata.at("resourceVersion"))
        co_return failure(kube::ErrorKind::conflict);
      patches.push_back(patch);
      auto& status = found->second["status"];
      if (!status.is_object()) status.emplace_object();
      merge_apply(status.get_object(), patch.at("status").as_object());
      touch(request.key);
    }
    if (after)
      if (auto error = after(request)) co_return *error;
    co_return kube::Object{found->second};
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource, kube::ListOptions, const kube::Decoder&) override {
    co_return failure(kube::ErrorKind::unsupported);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource, kube::WatchOptions,
                                                                    const kube::Decoder&) override {
    co_return failure(kube::ErrorKind::unsupported);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string) override {
    co_return failure(kube::ErrorKind::unsupported);
  }
  std::string_view name() const override { return "few"; }

  void touch(const Key& key) { objects[key]["metadata"].as_object()["resourceVersion"] = std::to_string(++version_); }
  static kube::Error failure(kube::ErrorKind kind) {
    kube::Error error;
    error.kind = kind;
    return error;
  }

 private:
  unsigned version_ = 100;
};

}  // namespace hubferry::phase::test
