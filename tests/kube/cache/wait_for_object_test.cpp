#include "hubferry/kube/wait_for_object.hpp"

#include "kube/cache/cache_fixture.hpp"

namespace hubferry::test {
namespace {

class WaitForObjectTest : public testing::Test {
 protected:
  using Batch = std::vector<kube::WatchEvent>;

  Awaitable<bool> wait_for(kube::ObjectPredicate predicate, async::Duration limit) {
    const kube::Resource widgets{"example.com", "v1", "widgets", "Widget", true};
    kube::Env env{clock_, random_, metrics_, log_.logger()};
    return kube::wait_for_object(api_, widgets, key("a"), std::move(predicate), async::later(clock_.now(), limit), env);
  }

  async::VirtualLoop loop_;
  async::VirtualClock& clock_ = loop_.clock();
  async::Random random_{1};
  obs::Metrics metrics_;
  obs::LogCapture log_;
  ScriptedApi api_{clock_};
  std::shared_ptr<ScriptedApi::Feed> feed_ = api_.will_watch();
};

TEST_F(WaitForObjectTest, EndsWithTheChangeThatIsWantedAndClosesTheWatch) {
  std::string seen;
  auto turns_blue = [&](const Object* object) {
    if (object != nullptr) seen = object->string_at({"spec", "color"});
    return seen == "blue";
  };
  feed_->try_push(Batch{added(widget("a", 1, "red")), initial_end(1)});
  feed_->try_push(Batch{modified(widget("a", 2, "blue"))});
  EXPECT_TRUE(loop_.run(wait_for(turns_blue, 1h)));
  EXPECT_EQ(seen, "blue");
  EXPECT_EQ(api_.open_streams(), 0);
  EXPECT_EQ(api_.calls().at(0).watch_options.field_selector, "metadata.name=a");
  EXPECT_EQ(api_.calls().at(0).watch_options.ns, "n");
}

TEST_F(WaitForObjectTest, AnObjectThatDoesNotExistIsNull) {
  auto is_absent = [](const Object* object) { return object == nullptr; };
  feed_->try_push(Batch{initial_end(1)});
  EXPECT_TRUE(loop_.run(wait_for(is_absent, 1h)));
}

TEST_F(WaitForObjectTest, TheDeadlineEndsItWithoutAnError) {
  auto never = [](const Object*) { return false; };
  feed_->try_push(Batch{initial_end(1)});
  EXPECT_FALSE(loop_.run(wait_for(never, 10s)));
  EXPECT_EQ(clock_.now() - async::TimePoint{}, 10s);
  EXPECT_EQ(api_.open_streams(), 0);
}

}  // namespace
}  // namespace hubferry::test
