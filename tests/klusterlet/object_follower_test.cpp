#include "klusterlet/object_follower.hpp"

#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

using kube::resources::config_maps;

/// A follower that begins with a watch, and what it returns.
class FollowerTest : public KlusterletTest {
 protected:
  ~FollowerTest() override {
    followers_.stop();
    loop_.run(followers_.join());
  }

  void follow(ObjectFollower::Start start) { followers_.spawn(read_all(std::move(start))); }

  Awaitable<> read_all(ObjectFollower::Start start) {
    ObjectFollower follower{hub1_.server.api(), config_maps, key_, kube::object_decoder(), env_};
    follower.begin_with_watch(std::move(start));
    while (true) {
      auto next = co_await follower.next();
      const auto object = std::static_pointer_cast<const kube::Object>(next);
      seen_.push_back(object == nullptr ? "none" : std::string{object->string_at({"data", "x"})});
    }
  }

  void write(const std::string& text) {
    kube::json::object wanted{{"metadata", kube::json::object{{"name", key_.name}, {"namespace", key_.ns}}},
                              {"data", kube::json::object{{"x", text}}}};
    auto& api = hub1_.server.api();
    const bool is_there = hub1_.server.object(config_maps, key_).has_value();
    loop_.run(hub1_.must(is_there ? api.merge_patch(config_maps, key_, std::move(wanted))
                                  : api.create(config_maps, std::move(wanted))));
  }
  std::string version() const { return std::string{hub1_.server.object(config_maps, key_)->resource_version()}; }

  const kube::Key key_{"default", "one"};
  std::vector<std::string> seen_;
  async::TaskScope followers_{loop_.executor()};
};

TEST_F(FollowerTest, AWatchAloneBringsTheObjectAndItsChanges) {
  write("1");
  hub1_.server.forget_requests();
  follow({});
  loop_.run_for(1s);
  write("2");
  loop_.run_for(1s);
  EXPECT_THAT(seen_, testing::ElementsAre("1", "2"));
  EXPECT_EQ(hub1_.count("list", "configmaps"), 0U);
}

TEST_F(FollowerTest, AWatchFromAVersionBringsOnlyWhatCameLater) {
  write("1");
  follow({.resource_version = version()});
  loop_.run_for(1s);
  EXPECT_THAT(seen_, testing::IsEmpty());
  write("2");
  loop_.run_for(1s);
  EXPECT_THAT(seen_, testing::ElementsAre("2"));
}

TEST_F(FollowerTest, AnObjectThatDoesNotExistIsNoticedAfterTheSilence) {
  follow({.longest_silence = 10s});
  loop_.run_for(9s);
  EXPECT_THAT(seen_, testing::IsEmpty());
  loop_.run_for(2s);
  EXPECT_THAT(seen_, testing::ElementsAre("none"));
  write("1");
  loop_.run_for(1s);
  EXPECT_THAT(seen_, testing::ElementsAre("none", "1"));
}

// A server may begin the watch with what its cache has.
TEST_F(FollowerTest, AStateOlderThanWhatIsKnownIsNotReturned) {
  write("1");
  const auto next = std::to_string(std::stoll(version()) + 1);
  follow({.not_older_than = next, .longest_silence = 10s});
  loop_.run_for(1s);
  EXPECT_THAT(seen_, testing::IsEmpty());
  write("2");
  loop_.run_for(1s);
  EXPECT_THAT(seen_, testing::ElementsAre("2"));
}

// A hub that was restored counts from an earlier version: a list says what is true.
TEST_F(FollowerTest, AListIsBelievedWhateverItsVersion) {
  write("1");
  follow({.not_older_than = "1000000", .longest_silence = 10s});
  loop_.run_for(11s);
  EXPECT_THAT(seen_, testing::ElementsAre("1"));
}

TEST_F(FollowerTest, ADeletionWhileTheWatchWasAwayIsNoticed) {
  write("1");
  follow({});
  loop_.run_for(1s);
  hub1_.server.outage(true);
  hub1_.server.cut_watches();
  loop_.run_for(1s);
  hub1_.server.outage(false);
  loop_.run(hub1_.must(hub1_.server.api().remove(config_maps, key_)));
  loop_.run_for(2min);
  EXPECT_THAT(seen_, testing::ElementsAre("1", "none"));
}

}  // namespace
}  // namespace hubferry::klusterlet::test
