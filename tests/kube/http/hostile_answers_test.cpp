// Servers that lie, or answer what was not asked for. Any hub may be one: the manager must survive it.
#include <gmock/gmock.h>

#include "kube/http/http_fixture.hpp"
#include "support/hostile_scripts.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;

const std::string json_header = "Content-Type: application/json\r\n";

class HttpHostile : public HttpTest {
 protected:
  kube::Result<kube::ListPage> list(kube::Api& api) {
    return run(api.list(kube::resources::config_maps, {}, kube::object_decoder()));
  }
  /// Opens a watch and reads it to its end; the error, if there was one.
  kube::Result<std::vector<kube::WatchEvent>> watch(kube::Api& api) {
    auto stream = run(api.watch(kube::resources::config_maps, {}, kube::object_decoder()));
    if (!stream) return stream.error();
    std::vector<kube::WatchEvent> all;
    while (true) {
      auto events = run((*stream)->next());
      if (!events) return events.error();
      if (events->empty()) return all;
      std::ranges::move(*events, std::back_inserter(all));
    }
  }
  kube::ClientConfig trusted() {
    kube::ClientConfig config;
    config.ca_pem = authority_.certificate_pem();
    return config;
  }
  Identity identity() { return authority_.issue({"IP:127.0.0.1"}); }

  Authority authority_{"test authority"};
};

std::string config_map(const std::string& name) {
  return R"({"kind":"ConfigMap","metadata":{"name":")" + name + R"(","namespace":"ns","resourceVersion":"7"}})";
}

// 2^62: what a header claims must never be reserved.
TEST_F(HttpHostile, AHugeContentLengthIsNotReserved) {
  for (const char* length : {"4611686018427387904", "17179869184"}) {
    ScriptedServer server{[length](Session& session) {
      session.read_request();
      session.send("HTTP/1.1 200 OK\r\n" + json_header + "Content-Length: " + length + "\r\n\r\n{");
    }};
    auto api = connect(server);
    EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
    EXPECT_EQ(create(*api).error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(list(*api).error().kind, ErrorKind::bad_response);
    EXPECT_EQ(watch(*api).error().kind, ErrorKind::unreachable) << "a watch has no length; this one broke off";
  }
}

// The same servers run beside the manager in tests/e2e.
TEST_F(HttpHostile, NoHostileServerIsTakenForOneThatAnswers) {
  for (const auto& [name, script] : hostile_scripts()) {
    SCOPED_TRACE(name);
    ScriptedServer server{script};
    auto api = connect(server);
    EXPECT_FALSE(get(*api));
    EXPECT_FALSE(run(api->list_all(kube::resources::config_maps, {})));
    const auto serves = run(api->serves(kube::resources::leases));
    EXPECT_FALSE(serves && *serves);
  }
}

TEST_F(HttpHostile, AHugeChunkIsNotReserved) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.send("HTTP/1.1 200 OK\r\n" + json_header + "Transfer-Encoding: chunked\r\n\r\n4000000000000000\r\n{");
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
  EXPECT_EQ(list(*api).error().kind, ErrorKind::bad_response);
  EXPECT_EQ(watch(*api).error().kind, ErrorKind::unreachable);
}

TEST_F(HttpHostile, ACompressedAnswerIsInflatedNoFurtherThanTheLimit) {
  const std::string bomb = gzip(std::string(300UL * 1024 * 1024, ' '));
  ScriptedServer server{[&](Session& session) {
    session.read_request();
    session.reply(200, bomb, json_header + "Content-Encoding: gzip\r\n");
  }};
  auto api = connect(server);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
  EXPECT_THAT(object.error().message, HasSubstr("larger than"));
}

// An answer shifted by one would be taken for that of the next request: once, another's object for our Lease.
TEST_F(HttpHostile, AnInformationalAnswerIsSkippedAndTheConnectionNotUsedAgain) {
  for (const bool at_once : {true, false}) {
    ScriptedServer server{identity(), [at_once](Session& session) {
                            while (true) {
                              const auto request = session.read_request();
                              const std::string name = request.find("/b ") != std::string::npos ? "b" : "a";
                              const auto body = config_map(name);
                              session.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
                              if (!at_once) usleep(20'000);
                              session.reply(200, body);
                            }
                          }};
    auto api = connect(server, trusted());
    for (const char* name : {"a", "b", "a"}) {
      const auto object = run(api->get(kube::resources::config_maps, {"ns", name}));
      ASSERT_TRUE(object) << object.error();
      EXPECT_EQ(object->name(), name);
    }
    EXPECT_EQ(server.accepted(), 3);
  }
}

TEST_F(HttpHostile, InformationalAnswersWithoutEndAreABadResponse) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    while (true) session.send("HTTP/1.1 100 Continue\r\n\r\n");
  }};
  auto api = connect(server);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::bad_response);
}

TEST_F(HttpHostile, AConnectionWithBytesAfterTheAnswerIsNotUsedAgain) {
  for (const bool in_one_piece : {true, false}) {
    ScriptedServer server{identity(), [in_one_piece](Session& session) {
                            const auto request = session.read_request();
                            const auto surplus = "HTTP/1.1 200 OK\r\n" + json_header +
                                                 "Content-Length: " + std::to_string(object_a.size()) + "\r\n\r\n" +
                                                 object_a;
                            if (in_one_piece) {
                              session.send(surplus + surplus);
                            } else {
                              session.send(surplus);
                              session.send(surplus);
                            }
                            session.wait_until_gone();
                          }};
    auto api = connect(server, trusted());
    ASSERT_TRUE(get(*api));
    run(clock_.sleep_for(50ms));
    const auto again = get(*api);
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(server.accepted(), 2);
  }
}

TEST_F(HttpHostile, AnObjectOtherThanTheOneAskedForIsRefused) {
  for (const auto& body : {config_map("other"), std::string{R"({"kind":"Secret","metadata":{"name":"a"}})"},
                           std::string{R"({"kind":"Status","status":"Success"})"},
                           std::string{R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"elsewhere"}})"}}) {
    ScriptedServer server{[&body](Session& session) {
      while (true) {
        session.read_request();
        session.reply(200, body);
      }
    }};
    auto api = connect(server);
    const auto object = get(*api);
    ASSERT_FALSE(object) << body;
    EXPECT_EQ(object.error().kind, ErrorKind::bad_response);
    EXPECT_THAT(object.error().message, HasSubstr("another object"));
    EXPECT_EQ(create(*api).error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(run(api->update(kube::resources::config_maps, json_object(object_a))).error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(run(api->merge_patch(kube::resources::config_maps, key_a, {})).error().kind, ErrorKind::ambiguous);
    EXPECT_EQ(server.accepted(), 4) << "such a connection is not used again";
  }
}

TEST_F(HttpHostile, AListThatRepeatsItsContinueTokenIsRefused) {
  ScriptedServer server{[](Session& session) {
    while (true) {
      session.read_request();
      session.reply(200, R"({"metadata":{"resourceVersion":"12","continue":"again"},"items":[)" + object_a + "]}");
    }
  }};
  auto api = connect(server);
  const auto objects = run(api->list_all(kube::resources::config_maps, {}));
  ASSERT_FALSE(objects);
  EXPECT_EQ(objects.error().kind, ErrorKind::bad_response);
  EXPECT_EQ(server.requests().size(), 2U);
}

// After a fail-over of the API server all connections are dead, and only new ones work.
TEST_F(HttpHostile, ATimeoutOnAConnectionThatWasKeptEmptiesThePool) {
  constexpr int kept = 4;
  for (const bool caller_gives_up : {false, true}) {
    std::atomic<int> arrived = 0;
    ScriptedServer server{[&](Session& session) {
      if (session.index() >= kept) answer_all(session);
      session.read_request();
      ++arrived;
      while (arrived < kept) usleep(1000);
      session.reply(200, object_a);
      session.wait_until_gone();
    }};
    options_.request_timeout = caller_gives_up ? 20s : 1s;
    auto api = connect(server);
    auto fill = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      auto one = [&]() -> Awaitable<> { (void)co_await api->get(kube::resources::config_maps, key_a); };
      for (int i = 0; i < kept; ++i) scope.spawn(one());
      co_await scope.join();
    };
    run(fill());
    ASSERT_EQ(server.accepted(), kept);
    auto impatient = [&]() -> Awaitable<> {
      auto request = api->get(kube::resources::config_maps, key_a);
      auto answer = co_await async::before_deadline(clock_, clock_.now() + 1500ms, std::move(request));
      EXPECT_FALSE(answer && *answer);
    };
    run(impatient());
    const auto object = get(*api);
    EXPECT_TRUE(object) << object.error();
  }
}

TEST_F(HttpHostile, AListMayTakeLongerThanARequestWhileItMakesProgress) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.start_chunked();
    session.chunk(R"({"metadata":{"resourceVersion":"12"},"items":[)" + object_a);
    for (int i = 0; i < 8; ++i) {
      usleep(150'000);
      session.chunk("," + object_a);
    }
    if (session.index() > 0) session.wait_until_gone();
    session.chunk("]}");
    session.chunk("");
  }};
  options_.request_timeout = 600ms;
  auto api = connect(server);
  const auto page = list(*api);
  ASSERT_TRUE(page) << page.error();
  EXPECT_EQ(page->items.size(), 9U);
  EXPECT_EQ(list(*api).error().kind, ErrorKind::unreachable) << "silence is no progress";
}

TEST_F(HttpHostile, ARequestWithoutANameIsNotSent) {
  ScriptedServer server{answer_all};
  auto api = connect(server);
  const auto& config_maps = kube::resources::config_maps;
  for (const char* name : {"", ".", "..", "a/b"}) {
    const kube::Key key{"ns", name};
    kube::json::object object{{"metadata", kube::json::object{{"name", name}, {"namespace", "ns"}}}};
    EXPECT_EQ(run(api->remove(config_maps, key)).error().kind, ErrorKind::invalid) << name;
    EXPECT_EQ(run(api->get(config_maps, key)).error().kind, ErrorKind::invalid) << name;
    EXPECT_EQ(run(api->update(config_maps, object)).error().kind, ErrorKind::invalid) << name;
    EXPECT_EQ(run(api->merge_patch(config_maps, key, {})).error().kind, ErrorKind::invalid) << name;
    EXPECT_EQ(run(api->apply(config_maps, object)).error().kind, ErrorKind::invalid) << name;
  }
  EXPECT_TRUE(server.requests().empty());
}

std::string nested(const std::string& name, std::size_t levels) {
  return R"({"kind":"ConfigMap","metadata":{"name":")" + name + R"(","namespace":"ns","resourceVersion":"8"},"data":)" +
         std::string(levels, '[') + std::string(levels, ']') + "}";
}

TEST_F(HttpHostile, DeepObjectsAreReadAndOfThoseTooDeepOnlyTheName) {
  const std::string hopeless = nested("hopeless", 100'000);
  ScriptedServer server{[&](Session& session) {
    const auto request = session.read_request();
    if (request.find("watch=true") != std::string::npos) {
      session.start_chunked();
      for (const auto& object : {hopeless, nested("deep", 500)})
        session.chunk(R"({"type":"ADDED","object":)" + object + "}\n");
      session.chunk("");
    } else if (request.find("configmaps?") != std::string::npos) {
      session.reply(200, R"({"metadata":{"resourceVersion":"12"},"items":[)" + object_a + "," + hopeless + "," +
                             nested("deep", 500) + "]}");
    } else {
      session.reply(200, nested("a", 500));
    }
  }};
  auto api = connect(server);
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
  const auto page = list(*api);
  ASSERT_TRUE(page) << page.error();
  ASSERT_EQ(page->items.size(), 3U);
  EXPECT_EQ(page->items.at(1).key, (kube::Key{"ns", "hopeless"}));
  EXPECT_EQ(page->items.at(1).resource_version, "8");
  EXPECT_EQ(page->items.at(1).object, nullptr);
  EXPECT_EQ(page->items.at(2).key.name, "deep");
  EXPECT_EQ(run(api->list_all(kube::resources::config_maps, {}))->size(), 2U);
  const auto events = watch(*api);
  ASSERT_TRUE(events) << events.error();
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ(events->at(0).decoded.key.name, "hopeless");
  EXPECT_EQ(events->at(0).decoded.object, nullptr);
  EXPECT_EQ(events->at(1).decoded.key.name, "deep");
}

TEST_F(HttpHostile, OfAnObjectWithANumberThatCannotBeWrittenAgainOnlyTheNameIsRead) {
  for (const auto* number : {"1e309", "-1e309", "0e999999", "1e99999999999"}) {
    const std::string hopeless =
        R"({"kind":"ConfigMap","metadata":{"name":"hopeless","namespace":"ns"},"data":[)" + std::string{number} + "]}";
    ScriptedServer server{[&](Session& session) {
      const auto request = session.read_request();
      if (request.find("configmaps?") != std::string::npos)
        session.reply(200, R"({"metadata":{"resourceVersion":"12"},"items":[)" + hopeless + "," + object_a + "]}");
      else
        session.reply(200, hopeless);
    }};
    auto api = connect(server);
    EXPECT_FALSE(get(*api)) << number;
    const auto page = list(*api);
    ASSERT_TRUE(page) << page.error();
    ASSERT_EQ(page->items.size(), 2U) << number;
    EXPECT_EQ(page->items.at(0).key.name, "hopeless");
    EXPECT_EQ(page->items.at(0).object, nullptr) << number;
    EXPECT_NE(page->items.at(1).object, nullptr);
  }
}

}  // namespace
}  // namespace hubferry::test
