// Requests whose credential a plugin has to get first.
#include <gmock/gmock.h>

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include "kube/config/manual_clock.hpp"
#include "kube/config/samples.hpp"
#include "kube/http/http_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using Person = kube::ExecPlugin::Person;

/// Outlives the loop of the fixture, and all that waits there.
struct HasManualClock {
  ManualClock manual_;
};

/// A plugin that ends 50 seconds after it was started, by the client's clock.
class HttpLogin : protected HasManualClock, public HttpTest {
 protected:
  kube::Result<kube::Object> get_after_login(Person person) {
    ScriptedServer server{answer_all};
    kube::ClientConfig config;
    config.server = server.url();
    config.exec.emplace();
    config.exec->api_version = exec_v1;
    config.exec->command = directory_.write_script(
        "login", "cd '" + directory_.path().string() + "'; echo started > started\n" +
                     "while [ ! -e finished ]; do sleep 0.01; done\n" +
                     R"(echo '{"kind":"ExecCredential","apiVersion":")" + exec_v1 + R"(","status":{"token":"t"}}')");
    config.exec->person = person;
    kube::Env env{manual_, random_, metrics_, obs::Logger{}};
    const auto api = kube::make_http_api(std::move(config), options_, loop_.executor(), env);
    kube::Result<kube::Object> result{kube::Error{}};
    auto ask = [&]() -> Awaitable<> { result = co_await api->get(kube::resources::config_maps, key_a); };
    auto body = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      scope.spawn(ask());
      while (!std::filesystem::exists(directory_.path() / "started")) co_await clock_.sleep_for(1ms);
      manual_.advance(50s);
      // What gave up by now has had its chance to say so.
      for (int turn = 0; turn < 10; ++turn) co_await async::asio::post(async::asio::deferred);
      directory_.write("finished", "");
      co_await scope.join();
      // It uses what the same login has brought, late or not.
      const auto next = co_await api->get(kube::resources::config_maps, key_a);
      EXPECT_TRUE(next) << next.error();
    };
    run(body());
    return result;
  }

  TemporaryDirectory directory_;
};

TEST_F(HttpLogin, ARequestThatAPersonWaitsForHasItsWholeTimeAfterTheLogin) {
  for (const auto person : {Person::waits, Person::has_terminal}) {
    const auto object = get_after_login(person);
    EXPECT_TRUE(object) << object.error();
    for (const auto* file : {"started", "finished"}) std::filesystem::remove(directory_.path() / file);
  }
}

TEST_F(HttpLogin, AControllersRequestEndsInItsTimeWhateverThePluginDoes) {
  const auto object = get_after_login(Person::none);
  ASSERT_FALSE(object);
  EXPECT_THAT(object.error().message, testing::HasSubstr("the credential plugin did not answer in time"));
}

}  // namespace
}  // namespace hubferry::test
