#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/json/parse.hpp>
#include <filesystem>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/http_api.hpp"
#include "support/coroutine_test.hpp"
#include "support/real_loop.hpp"
#include "support/scripted_server.hpp"

namespace hubferry::test {

using namespace std::chrono_literals;
using async::Awaitable;
using kube::ErrorKind;

inline const kube::Key key_a{"ns", "a"};
inline const std::string object_a =
    R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","resourceVersion":"7"}})";

inline kube::json::object json_object(std::string_view text) {
  return kube::json::parse(text).as_object();
}

inline std::size_t open_files() {
  using std::filesystem::directory_iterator;
  return static_cast<std::size_t>(std::distance(directory_iterator{"/proc/self/fd"}, directory_iterator{}));
}

inline std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline void answer_all(Session& session) {
  while (true) {
    session.read_request();
    session.reply(200, object_a);
  }
}

/// A client on a loop in the test's thread, against scripted servers. Pauses and limits are short, so that whatever
/// must time out does so soon; a hang fails the test.
class HttpTest : public testing::Test {
 protected:
  HttpTest() {
    options_.connect_timeout = 2s;
    options_.request_timeout = 5s;
    options_.max_retries = 1;
  }

  std::unique_ptr<kube::Api> connect(const ScriptedServer& server) { return connect(server, {}); }
  std::unique_ptr<kube::Api> connect(const ScriptedServer& server, kube::ClientConfig config) {
    config.server = server.url();
    return connect(std::move(config));
  }
  std::unique_ptr<kube::Api> connect(kube::ClientConfig config) {
    return kube::make_http_api(std::move(config), options_, loop_.executor(), env_);
  }

  template <typename T>
  T run(Awaitable<T> task) {
    return loop_.run(async::with_deadline(clock_, clock_.now() + 30s, std::move(task)));
  }
  kube::Result<kube::Object> get(kube::Api& api) { return run(api.get(kube::resources::config_maps, key_a)); }
  kube::Result<kube::Object> create(kube::Api& api) {
    return run(api.create(kube::resources::config_maps, json_object(object_a)));
  }

  /// Runs `task` and cancels it once `ready()`; passes when it unwinds by cancellation.
  template <typename Ready>
  void expect_cancellable(Awaitable<> task, Ready ready) {
    bool finished = false;
    auto victim = [&]() -> Awaitable<> {
      co_await std::move(task);
      finished = true;
    };
    auto body = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      scope.spawn(victim());
      while (!ready() && !finished) co_await clock_.sleep_for(1ms);
      scope.stop();
      co_await scope.join();
    };
    run(body());
    EXPECT_FALSE(finished) << "it ended before it was cancelled";
  }

  async::RealClock clock_;
  async::Random random_{1};
  obs::Metrics metrics_;
  kube::HttpApiOptions options_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  RealLoop loop_;
};

}  // namespace hubferry::test
