#pragma once

#include <gmock/gmock.h>

#include <set>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/cache.hpp"
#include "kube/cache/scripted_api.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::test {

using namespace std::chrono_literals;
using async::Awaitable;
using kube::Key;
using kube::Object;

inline kube::Decoded widget(const std::string& name, int version, const std::string& color = "red") {
  kube::json::object metadata{{"name", name}, {"namespace", "n"}, {"resourceVersion", std::to_string(version)}};
  kube::json::object spec{{"color", color}};
  kube::json::object content;
  content["metadata"] = std::move(metadata);
  content["spec"] = std::move(spec);
  return kube::object_decoder().from_object(Object{std::move(content)}).value();
}

inline Key key(const std::string& name) {
  return {"n", name};
}

inline kube::WatchEvent added(kube::Decoded object) {
  return {kube::WatchEventType::added, std::move(object), false};
}
inline kube::WatchEvent modified(kube::Decoded object) {
  return {kube::WatchEventType::modified, std::move(object), false};
}
inline kube::WatchEvent deleted(kube::Decoded object) {
  return {kube::WatchEventType::deleted, std::move(object), false};
}
inline kube::WatchEvent bookmark(int version) {
  return {kube::WatchEventType::bookmark, {{}, std::to_string(version), nullptr}, false};
}
inline kube::WatchEvent initial_end(int version) {
  return {kube::WatchEventType::bookmark, {{}, std::to_string(version), nullptr}, true};
}

inline std::string color_of(const std::shared_ptr<const Object>& object) {
  return object ? std::string{object->string_at({"spec", "color"})} : "none";
}

/// A cache of widgets on a scripted server, on virtual time.
class CacheTest : public testing::Test {
 protected:
  using Batch = std::vector<kube::WatchEvent>;

  static kube::CacheOptions lists_first() {
    kube::CacheOptions options;
    options.watch.stream_initial = false;
    return options;
  }

  explicit CacheTest(kube::CacheOptions options = lists_first())
      : cache_(api_, {"example.com", "v1", "widgets", "Widget", true}, std::move(options), kube::object_decoder(),
               kube::Env{loop_.clock(), random_, metrics_, log_.logger()}) {}

  /// Runs `body` beside the cache.
  template <typename Body>
  void with_cache(Body body) {
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(cache_.run());
      co_await body();
      scope.stop();
    };
    loop_.run(async::with_scope(both));
    EXPECT_EQ(api_.open_streams(), 0);
  }

  /// Lets all that can happen now happen.
  Awaitable<> settle() { return clock_.sleep_for(100ms); }

  void record_changes() {
    subscription_ = cache_.subscribe([this](const Key& changed, const auto& old, const auto& now) {
      changes_.push_back(changed.name + ": " + color_of(old) + " -> " + color_of(now));
    });
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    cache_.for_each([&](const Key& at, const auto&) { names.insert(at.name); });
    return names;
  }

  async::VirtualLoop loop_;
  async::VirtualClock& clock_ = loop_.clock();
  async::Random random_{1};
  obs::Metrics metrics_;
  obs::LogCapture log_;
  ScriptedApi api_{clock_};
  kube::Cache<Object> cache_;
  std::vector<std::string> changes_;
  kube::CacheSubscription subscription_;
};

}  // namespace hubferry::test
