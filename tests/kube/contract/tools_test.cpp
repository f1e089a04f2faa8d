// The tools of a controller, against a whole server.
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/kube/event_recorder.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

TEST_P(KubeContract, EditsByManyAtOnceLoseNoUpdate) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a", "");
    async::TaskScope scope{co_await asio::this_coro::executor};
    auto append = [&](std::string letter) -> Awaitable<> {
      Mutation mutate = [&](json::object& object) {
        const std::string before{string_at(object, {"data", "k"})};
        if (before.find(letter) != std::string::npos) return false;
        object["data"].get_object()["k"] = before + letter;
        return true;
      };
      EditOptions options;
      options.attempts = 30;
      auto edited = co_await edit(api(), resources::config_maps, key("a"), mutate, options);
      EXPECT_TRUE(edited.has_value());
    };
    for (const auto* letter : {"a", "b", "c", "d", "e"}) scope.spawn(append(letter));
    co_await scope.join();
    auto got = co_await api().get(resources::config_maps, key("a"));
    std::string letters{got->string_at({"data", "k"})};
    std::ranges::sort(letters);
    EXPECT_EQ(letters, "abcde");
  });
}

TEST_P(KubeContract, CreateOrPatchWorksOnAStatusToo) {
  run([&]() -> Awaitable<> {
    auto widgets = co_await install_widgets();
    Mutation wanted = [](json::object& object) {
      const auto* size = find(object, {"spec", "size"});
      if (size != nullptr && *size == 4) return false;
      object["spec"] = json::object{{"size", 4}};
      return true;
    };
    auto made = co_await create_or_patch(api(), widgets, key("a"), wanted);
    CO_ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->outcome, WriteOutcome::created);
    auto same = co_await create_or_patch(api(), widgets, key("a"), wanted);
    EXPECT_EQ(same->outcome, WriteOutcome::unchanged);
    Mutation report = [&](json::object& object) {
      auto& status = object["status"];
      if (!status.is_object()) status.emplace_object();
      return set_condition(status.get_object(), {"Ready", ConditionStatus::yes, "Done", "all is well", 1},
                           world().env().clock.wall_now());
    };
    EditOptions options;
    options.subresource = "status";
    auto reported = co_await create_or_patch(api(), widgets, key("a"), report, options);
    CO_ASSERT_TRUE(reported.has_value());
    EXPECT_TRUE(is_condition_true(reported->object, "Ready"));
  });
}

TEST_P(KubeContract, EventsOfTheRecorderAreAccepted) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    EventRecorderOptions options;
    options.controller = "example.io/contract";
    options.instance = "contract-1";
    EventRecorder recorder{api(), options, world().env()};
    async::TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(recorder.run());
    const auto regarding = reference_to(resources::config_maps, made);
    for (int i = 0; i < 3; ++i) {
      recorder.event(regarding, EventType::warning, "Failed", "Move", "it broke");
      co_await recorder.flushed();
    }
    recorder.event(regarding, EventType::normal, "Moved", "Move", "über alle Berge");
    co_await recorder.flushed();
    scope.stop();
    co_await scope.join();
    auto events = co_await api().list_all(resources::events, here());
    CO_ASSERT_TRUE(events.has_value());
    CO_ASSERT_EQ(events->size(), 2U);
    for (const auto& event : *events) {
      EXPECT_EQ(event.string_at({"regarding", "uid"}), made.uid());
      if (event.string_at({"reason"}) == "Failed") EXPECT_EQ(*event.find({"series", "count"}), 3);
    }
  });
}

TEST_P(KubeContract, EventsAboutClusterScopedObjectsAreAccepted) {
  run([&]() -> Awaitable<> {
    const Key key{{}, ns()};
    auto regarded = co_await api().get(resources::namespaces, key);
    CO_ASSERT_TRUE(regarded.has_value());
    EventRecorderOptions options;
    options.controller = "example.io/contract";
    options.instance = "contract-1";
    EventRecorder recorder{api(), options, world().env()};
    async::TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(recorder.run());
    for (int i = 0; i < 2; ++i) {
      recorder.event(reference_to(resources::namespaces, *regarded), EventType::normal, "Moved", "Move", "all of it");
      co_await recorder.flushed();
    }
    scope.stop();
    co_await scope.join();
    const ListOptions everywhere;
    auto events = co_await api().list_all(resources::events, everywhere);
    CO_ASSERT_TRUE(events.has_value());
    std::erase_if(*events, [&](const Object& one) { return one.string_at({"regarding", "uid"}) != regarded->uid(); });
    CO_ASSERT_EQ(events->size(), 1U);
    EXPECT_EQ(*events->front().find({"series", "count"}), 2);
  });
}

TEST_P(KubeContract, ALeaseIsTakenRenewedReleasedAndTakenByTheNext) {
  run([&]() -> Awaitable<> {
    LeaderElectionOptions options;
    options.name = "leader";
    options.ns = ns();
    options.lease_duration = 3s;
    options.renew_deadline = 2s;
    options.retry_period = 200ms;
    options.identity = "one";
    LeaderElector one{api(), options, world().env()};
    options.identity = "two";
    LeaderElector two{api(), options, world().env()};
    std::vector<std::int64_t> epochs;
    auto brief = [&](LeaderEpoch epoch) -> Awaitable<> {
      epochs.push_back(epoch.number);
      co_await clock().sleep_for(1s);
      auto lease = co_await api().get(resources::leases, key("leader"));
      EXPECT_EQ(lease->string_at({"spec", "holderIdentity"}), epoch.identity);
      EXPECT_NE(lease->string_at({"spec", "renewTime"}), lease->string_at({"spec", "acquireTime"}));
    };
    async::TaskScope scope{co_await asio::this_coro::executor};
    scope.spawn(one.run(brief));
    co_await clock().sleep_for(100ms);
    scope.spawn(two.run(brief));
    co_await scope.join();
    EXPECT_THAT(epochs, testing::ElementsAre(0, 1));
    auto lease = co_await api().get(resources::leases, key("leader"));
    EXPECT_EQ(lease->string_at({"spec", "holderIdentity"}), "");
  });
}

}  // namespace
}  // namespace hubferry::contract
