#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/env.hpp"
#include "kube/control/store_api.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::kube {

using namespace std::chrono_literals;

/// A world on virtual time with one server in memory.
class ControlTest : public testing::Test {
 protected:
  /// Runs `body(scope)`; whatever it spawned is stopped when it returns.
  void run(std::function<Awaitable<>(async::TaskScope&)> body) {
    auto main = [&](async::TaskScope& scope) -> Awaitable<> {
      co_await body(scope);
      scope.stop();
    };
    loop_.run(async::with_scope(main));
  }

  [[nodiscard]] Env env() { return {clock_, random_, metrics_, log_.logger()}; }
  [[nodiscard]] Duration elapsed() const { return clock_.now() - TimePoint{}; }

  obs::Metrics metrics_;
  obs::LogCapture log_;
  async::Random random_{7};
  async::VirtualLoop loop_;
  async::VirtualClock& clock_ = loop_.clock();
  test::StoreApi api_{clock_};
};

}  // namespace hubferry::kube
