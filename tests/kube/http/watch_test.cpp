#include <gmock/gmock.h>

#include <future>

#include "kube/http/http_fixture.hpp"

namespace hubferry::test {
namespace {

using kube::Result;
using kube::WatchEvent;
using kube::WatchEventType;
using testing::HasSubstr;
using testing::Not;

std::string event(std::string_view type, std::string_view name, std::string_view version, std::size_t padding = 0) {
  return R"({"type":")" + std::string{type} + R"(","object":{"metadata":{"name":")" + std::string{name} +
         R"(","resourceVersion":")" + std::string{version} + R"("},"data":")" + std::string(padding, 'x') + "\"}}\n";
}

class HttpWatch : public HttpTest {
 protected:
  Result<std::unique_ptr<kube::WatchStream>> watch(kube::Api& api, kube::WatchOptions options = {}) {
    return run(api.watch(kube::resources::config_maps, std::move(options), kube::object_decoder()));
  }
  /// Opens a watch on a server that plays `script` after the request.
  std::unique_ptr<kube::WatchStream> open(ScriptedServer::Script script, kube::WatchOptions options = {}) {
    server_.emplace([script = std::move(script)](Session& session) {
      session.read_request();
      script(session);
    });
    api_ = connect(*server_);
    auto stream = watch(*api_, std::move(options));
    if (!stream) throw std::runtime_error(stream.error().describe());
    return std::move(*stream);
  }
  Result<std::vector<WatchEvent>> next(kube::WatchStream& stream) { return run(stream.next()); }

  std::optional<ScriptedServer> server_;
  std::unique_ptr<kube::Api> api_;
};

TEST_F(HttpWatch, EventsOfOneReadComeTogetherAndAnOrderlyEndIsAnEmptyList) {
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.chunk(event("ADDED", "a", "1") + event("MODIFIED", "a", "2") + event("DELETED", "a", "3"));
    session.chunk("");
  });
  const auto events = next(*stream);
  ASSERT_TRUE(events) << events.error();
  ASSERT_EQ(events->size(), 3U);
  EXPECT_EQ(events->at(0).type, WatchEventType::added);
  EXPECT_EQ(events->at(1).type, WatchEventType::modified);
  EXPECT_EQ(events->at(2).type, WatchEventType::deleted);
  EXPECT_EQ(events->at(2).decoded.resource_version, "3");
  EXPECT_EQ(events->at(2).decoded.key.name, "a");
  for (int i = 0; i < 2; ++i) {
    const auto end = next(*stream);
    ASSERT_TRUE(end) << end.error();
    EXPECT_TRUE(end->empty());
  }
  EXPECT_THAT(server_->requests().at(0), Not(HasSubstr("gzip")));
}

TEST_F(HttpWatch, LinesAreCutWhereverThePiecesEnd) {
  auto stream = open([](Session& session) {
    session.start_chunked();
    for (const char c : event("ADDED", "a", "1") + event("ADDED", "b", "2")) session.chunk({&c, 1});
    session.chunk("");
  });
  std::vector<std::string> names;
  while (true) {
    const auto events = next(*stream);
    ASSERT_TRUE(events) << events.error();
    if (events->empty()) break;
    for (const auto& one : *events) names.push_back(one.decoded.key.name);
  }
  EXPECT_THAT(names, testing::ElementsAre("a", "b"));
}

TEST_F(HttpWatch, BookmarksCarryAVersionAndTheEndOfTheInitialEvents) {
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.chunk(R"({"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"40"}}})"
                  "\n"
                  R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"41",)"
                  R"("annotations":{"k8s.io/initial-events-end":"true"}}}})"
                  "\n");
    session.wait_until_gone();
  });
  const auto events = next(*stream);
  ASSERT_TRUE(events) << events.error();
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ(events->at(0).type, WatchEventType::bookmark);
  EXPECT_EQ(events->at(0).decoded.resource_version, "40");
  EXPECT_FALSE(events->at(0).initial_events_end);
  EXPECT_EQ(events->at(0).decoded.object, nullptr);
  EXPECT_TRUE(events->at(1).initial_events_end);
  EXPECT_EQ(events->at(1).decoded.resource_version, "41");
}

TEST_F(HttpWatch, AnErrorEventEndsTheStreamAfterTheEventsBeforeIt) {
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.chunk(event("ADDED", "a", "1") +
                  R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})"
                  "\n" +
                  event("ADDED", "b", "2"));
    session.wait_until_gone();
  });
  const auto events = next(*stream);
  ASSERT_TRUE(events) << events.error();
  EXPECT_EQ(events->size(), 1U);
  for (int i = 0; i < 2; ++i) {
    const auto gone = next(*stream);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().kind, ErrorKind::gone);
    EXPECT_THAT(gone.error().message, HasSubstr("too old"));
  }
  EXPECT_TRUE(server_->wait_until_idle()) << "a failed stream must be closed";
}

TEST_F(HttpWatch, GoneAsAStatusIsGoneToo) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(410, R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");
    session.wait_until_gone();
  }};
  auto api = connect(server);
  const auto stream = watch(*api);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::gone);
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_F(HttpWatch, HalfALineThenSilenceMeetsTheIdleLimit) {
  options_.watch_idle_margin = 100ms;
  kube::WatchOptions options;
  options.timeout = 1ms;
  auto stream = open(
      [](Session& session) {
        session.start_chunked();
        session.chunk(R"({"type":"ADDED","obj)");
        session.wait_until_gone();
      },
      options);
  const auto events = next(*stream);
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().kind, ErrorKind::unreachable);
  EXPECT_THAT(events.error().message, HasSubstr("silent"));
  EXPECT_TRUE(server_->wait_until_idle());
}

TEST_F(HttpWatch, ALostConnectionIsUnreachable) {
  for (const bool reset : {true, false}) {
    std::promise<void> was_read;
    auto stream = open([&](Session& session) {
      session.start_chunked();
      session.chunk(event("ADDED", "a", "1"));
      session.send("20\r\n{\"type\":");
      // A reset takes along what has not been read.
      was_read.get_future().wait_for(20s);
      if (reset) session.reset();
    });
    const auto events = next(*stream);
    was_read.set_value();
    ASSERT_TRUE(events) << events.error();
    const auto lost = next(*stream);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().kind, ErrorKind::unreachable);
    EXPECT_THAT(lost.error().message, HasSubstr("connection"));
    server_->wait_until_idle();
  }
}

TEST_F(HttpWatch, ATruncatedTlsStreamIsUnreachable) {
  const Authority authority{"test authority"};
  for (const bool farewell : {true, false}) {
    ScriptedServer server{authority.issue({"IP:127.0.0.1"}), [farewell](Session& session) {
                            session.read_request();
                            session.start_chunked();
                            session.chunk(event("ADDED", "a", "1"));
                            session.close(farewell);
                            session.wait_until_gone();
                          }};
    kube::ClientConfig config;
    config.ca_pem = authority.certificate_pem();
    auto api = connect(server, config);
    auto stream = watch(*api);
    ASSERT_TRUE(stream) << stream.error();
    EXPECT_TRUE(next(**stream));
    const auto lost = next(**stream);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().kind, ErrorKind::unreachable) << lost.error();
  }
}

TEST_F(HttpWatch, GarbageIsABadResponse) {
  for (const char* line : {"nonsense\n", "{\"type\":\"ADDED\",\"object\":\n", "{\"type\":\"WHAT\",\"object\":{}}\n",
                           "{\"type\":\"ADDED\",\"object\":{\"metadata\":}}\n"}) {
    auto stream = open([line](Session& session) {
      session.start_chunked();
      session.chunk(line);
      session.wait_until_gone();
    });
    const auto events = next(*stream);
    ASSERT_FALSE(events) << line;
    EXPECT_EQ(events.error().kind, ErrorKind::bad_response) << line;
    EXPECT_THAT(events.error().message, HasSubstr("GET /api/v1/configmaps"));
  }
}

TEST_F(HttpWatch, ALineThatIsCutOffAtAnOrderlyEndIsABadResponse) {
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.chunk(R"({"type":"ADDED","obj)");
    session.chunk("");
  });
  EXPECT_EQ(next(*stream).error().kind, ErrorKind::bad_response);
}

TEST_F(HttpWatch, ALineOf20MebibytesWorks) {
  constexpr std::size_t size = 20UL * 1024 * 1024;
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.chunk(event("ADDED", "big", "1", size));
    session.wait_until_gone();
  });
  const auto events = next(*stream);
  ASSERT_TRUE(events) << events.error();
  ASSERT_EQ(events->size(), 1U);
  const auto& object = *static_cast<const kube::Object*>(events->at(0).decoded.object.get());
  EXPECT_EQ(object.string_at({"data"}).size(), size);
}

TEST_F(HttpWatch, ALineOverTheLimitIsRefusedBeforeItHasAllCome) {
  options_.max_watch_line = 100'000;
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.chunk(R"({"type":"ADDED","object":")");
    while (true) session.chunk(std::string(10'000, 'x'));
  });
  const auto events = next(*stream);
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(events.error().message, HasSubstr("100000"));
  EXPECT_TRUE(server_->wait_until_idle());
}

TEST_F(HttpWatch, DestroyingTheStreamClosesTheConnection) {
  auto stream = open([](Session& session) {
    session.start_chunked();
    session.wait_until_gone();
  });
  stream.reset();
  // The end is dealt with on the client's loop.
  run(clock_.sleep_for(1ms));
  EXPECT_TRUE(server_->wait_until_idle());
}

TEST_F(HttpWatch, WatchesAreBounded) {
  options_.max_watches = 1;
  options_.request_timeout = 1s;
  auto first = open([](Session& session) {
    session.start_chunked();
    session.wait_until_gone();
  });
  const auto second = watch(*api_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::unreachable);
  EXPECT_THAT(second.error().message, HasSubstr("no connection became free"));
  first.reset();
  run(clock_.sleep_for(1ms));
  EXPECT_TRUE(watch(*api_));
}

}  // namespace
}  // namespace hubferry::test
