#include "hubferry/obs/health.hpp"

#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/obs/loop_pulse.hpp"
#include "obs/http_message.hpp"

namespace hubferry::obs {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

HttpResponse ask(const Health& health, const std::string& target) {
  return health.answer(*parse_target(target));
}

Health::Check failing(const std::string& reason) {
  return [reason] { return std::optional<std::string>(reason); };
}

Health::Check passing() {
  return [] { return std::nullopt; };
}

TEST(Health, AnswersOkWhenAllChecksPass) {
  Health health;
  health.add_readiness("caches", passing());
  for (const auto* path : {"/livez", "/readyz", "/healthz"}) {
    EXPECT_EQ(ask(health, path).status, 200) << path;
    EXPECT_EQ(ask(health, path).body, "ok") << path;
  }
}

TEST(Health, AVerboseAnswerListsTheChecks) {
  Health health;
  health.add_readiness("caches", passing());
  EXPECT_EQ(ask(health, "/readyz?verbose").body, "[+]ping ok\n[+]shutdown ok\n[+]caches ok\nreadyz check passed\n");
}

TEST(Health, OneFailureFailsTheWholeAndItsReasonIsShownOnlyVerbosely) {
  Health health;
  health.add_readiness("caches", failing("hubs are not listed yet"));
  const auto brief = ask(health, "/readyz");
  EXPECT_EQ(brief.status, 500);
  EXPECT_EQ(brief.body, "[+]ping ok\n[+]shutdown ok\n[-]caches failed: reason withheld\nreadyz check failed\n");
  EXPECT_THAT(ask(health, "/readyz?verbose").body, HasSubstr("[-]caches failed: hubs are not listed yet\n"));
  EXPECT_EQ(ask(health, "/livez").status, 200) << "not being ready is no reason for a restart";
}

TEST(Health, HealthzIsTheOldNameOfLivez) {
  Health health;
  health.add_liveness("loop", failing("stuck"));
  EXPECT_EQ(ask(health, "/healthz").status, 500);
  EXPECT_EQ(ask(health, "/livez").status, 500);
  EXPECT_EQ(ask(health, "/readyz").status, 200);
}

TEST(Health, ChecksCanBeExcluded) {
  Health health;
  health.add_readiness("one", failing("1"));
  health.add_readiness("two", failing("2"));
  EXPECT_EQ(ask(health, "/readyz?exclude=one").status, 500);
  const auto both = ask(health, "/readyz?exclude=one&exclude=two&verbose");
  EXPECT_EQ(both.status, 200);
  EXPECT_THAT(both.body, HasSubstr("[+]one excluded: ok\n"));
  EXPECT_THAT(ask(health, "/readyz?verbose&exclude=nobody").body,
              HasSubstr("cannot be excluded: no matches for \"nobody\"\n"));
}

TEST(Health, OneCheckCanBeAskedFor) {
  Health health;
  health.add_readiness("good", passing());
  health.add_readiness("bad", failing("reason"));
  EXPECT_EQ(ask(health, "/readyz/good").body, "ok");
  EXPECT_EQ(ask(health, "/readyz/bad").status, 500);
  EXPECT_THAT(ask(health, "/readyz/bad").body, Not(HasSubstr("reason\n")));
  EXPECT_THAT(ask(health, "/readyz/bad?verbose").body, HasSubstr("failed: reason\n"));
  EXPECT_EQ(ask(health, "/readyz/unknown").status, 404);
  EXPECT_EQ(ask(health, "/livez/good").status, 404);
  EXPECT_EQ(ask(health, "/livez/").body, "ok") << "no name: all of them";
}

TEST(Health, StoppingIsNotReadyButAlive) {
  Health health;
  health.set_stopping();
  EXPECT_EQ(ask(health, "/readyz").status, 500);
  EXPECT_THAT(ask(health, "/readyz").body, HasSubstr("[-]shutdown failed: stopping\n"));
  EXPECT_EQ(ask(health, "/livez").status, 200);
}

TEST(Health, OtherPathsAreNotFound) {
  const Health health;
  for (const auto* path : {"/", "/livezz", "/metrics", "//livez"}) EXPECT_EQ(ask(health, path).status, 404) << path;
}

TEST(Health, ACheckThatThrowsHasFailed) {
  Health health;
  health.add_liveness("broken", []() -> std::optional<std::string> { throw std::runtime_error("out of order"); });
  EXPECT_EQ(ask(health, "/livez").status, 500);
  EXPECT_THAT(ask(health, "/livez?verbose").body, HasSubstr("out of order"));
}

TEST(Health, AReasonCannotForgeALine) {
  Health health;
  health.add_liveness("hub", failing("no\n[+]hub ok\r\n"));
  EXPECT_THAT(ask(health, "/livez?verbose").body, HasSubstr("[-]hub failed: no [+]hub ok  \n"));
  EXPECT_THAT(ask(health, "/livez?verbose&exclude=%0A[%2B]hub").body, Not(HasSubstr("\n[+]hub")));
}

TEST(Health, NamesAreUniqueAndFitIntoAUrl) {
  Health health;
  health.add_liveness("loop", passing());
  EXPECT_THROW(health.add_liveness("loop", passing()), std::logic_error);
  EXPECT_THROW(health.add_readiness("ping", passing()), std::logic_error);
  EXPECT_THROW(health.add_readiness("", passing()), std::logic_error);
  EXPECT_THROW(health.add_readiness("a b", passing()), std::logic_error);
  EXPECT_THROW(health.add_readiness("a/b", passing()), std::logic_error);
  health.add_readiness("loop", passing());
}

TEST(CheckState, CarriesAResultBetweenThreads) {
  Health health;
  CheckState caches{"not synced"};
  health.add_readiness("caches", caches.check());
  EXPECT_THAT(ask(health, "/readyz?verbose").body, HasSubstr("not synced"));
  caches.pass();
  EXPECT_EQ(ask(health, "/readyz").status, 200);
  caches.fail("lost");
  EXPECT_THAT(ask(health, "/readyz?verbose").body, HasSubstr("lost"));
}

TEST(LoopPulse, PassesWhileTheLoopTurnsAndFailsWhenItDoesNot) {
  async::VirtualLoop loop;
  LoopPulse pulse{loop.clock(), {.beat = 1s, .stuck_after = 30s}};
  const auto check = pulse.check();
  auto watch = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(pulse.run());
    co_await loop.clock().sleep_for(1h);
    EXPECT_EQ(check(), std::nullopt);
    scope.stop();
  };
  loop.run(async::with_scope(watch));
  loop.run_for(29s);
  EXPECT_EQ(check(), std::nullopt);
  loop.run_for(3s);
  EXPECT_THAT(check().value_or(""), HasSubstr("has been blocked for 3"));
}

}  // namespace
}  // namespace hubferry::obs
