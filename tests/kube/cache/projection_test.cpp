#include "hubferry/kube/projection.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>

#include "hubferry/kube/string_pool.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using namespace std::chrono_literals;

struct Part {
  std::string name;
  std::int64_t count = 0;
};

struct Widget : Projected {
  std::string color;
  bool shiny = false;
  std::int64_t size = 0;
  async::WallTime created{};
  std::map<std::string, std::string> labels;
  std::vector<std::string> finalizers;
  std::vector<Part> parts;
};

const Decoder& widget_decoder() {
  static const ProjectionDecoder<Widget> decoder{[] {
    Schema<Part> part;
    part.text({"name"}, &Part::name).integer({"count"}, &Part::count);
    Schema<Widget> schema;
    schema.text({"spec", "color"}, &Widget::color)
        .boolean({"spec", "shiny"}, &Widget::shiny)
        .integer({"spec", "size"}, &Widget::size)
        .time({"metadata", "creationTimestamp"}, &Widget::created)
        .text_map({"metadata", "labels"},
                  [](Widget& to, std::string_view key, std::string_view value) { to.labels.emplace(key, value); })
        .texts({"metadata", "finalizers"}, [](Widget& to, std::string_view text) { to.finalizers.emplace_back(text); })
        .objects({"spec", "parts"}, &Widget::parts, part);
    return schema;
  }()};
  return decoder;
}

const Widget& widget(const Decoded& decoded) {
  return *static_cast<const Widget*>(decoded.object.get());
}

TEST(Projection, KeepsTheDeclaredFieldsAndSkipsTheRest) {
  const auto decoded = widget_decoder().from_bytes(
      R"({"kind":"Widget","metadata":{"managedFields":[{"fieldsV1":{"f:spec":{"f:color":{}}}}],"name":"a","namespace":"n",)"
      R"("resourceVersion":"42","creationTimestamp":"2030-01-01T00:00:07Z","labels":{"x":"1","y":"2"},)"
      R"("finalizers":["f1","f2"]},"spec":{"deep":[[{"color":"no"}]],"color":"red","shiny":true,"size":-7,)"
      R"("parts":[{"name":"p","count":3,"more":{}},{"count":4}]}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(decoded->key, (Key{"n", "a"}));
  EXPECT_EQ(decoded->resource_version, "42");
  const auto& w = widget(*decoded);
  EXPECT_EQ(w.color, "red");
  EXPECT_TRUE(w.shiny);
  EXPECT_EQ(w.size, -7);
  EXPECT_EQ(w.created, async::parse_time("2030-01-01T00:00:07Z"));
  EXPECT_THAT(w.labels, ElementsAre(Pair("x", "1"), Pair("y", "2")));
  EXPECT_THAT(w.finalizers, ElementsAre("f1", "f2"));
  ASSERT_EQ(w.parts.size(), 2U);
  EXPECT_EQ(w.parts[0].name, "p");
  EXPECT_EQ(w.parts[1].count, 4);
}

TEST(Projection, ResolvesEscapesAndKeepsUnicode) {
  const auto decoded = widget_decoder().from_bytes(
      R"({"metadata":{"name":"a","labels":{"k\u0065y":"v\"\\\n"}},"spec":{"color":"gr\u00fcn \ud83d\ude00 ü"}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(widget(*decoded).color, "grün 😀 ü");
  EXPECT_THAT(widget(*decoded).labels, ElementsAre(Pair("key", "v\"\\\n")));
}

TEST(Projection, IgnoresValuesOfAnotherType) {
  const auto decoded = widget_decoder().from_bytes(
      R"({"metadata":{"name":"a","creationTimestamp":"yesterday","labels":["x"],"finalizers":[1,"f",null]},)"
      R"("spec":{"color":17,"shiny":"true","size":1.5,"parts":[1,{"name":null},[]]}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  const auto& w = widget(*decoded);
  EXPECT_EQ(w.color, "");
  EXPECT_FALSE(w.shiny);
  EXPECT_EQ(w.size, 0);
  EXPECT_EQ(w.created, async::WallTime{});
  EXPECT_TRUE(w.labels.empty());
  EXPECT_THAT(w.finalizers, ElementsAre("f"));
  EXPECT_EQ(w.parts.size(), 1U);
}

TEST(Projection, LeavesOutTimesThatNanosecondsCannotHold) {
  for (const std::string time : {"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    const auto decoded =
        widget_decoder().from_bytes(R"({"metadata":{"name":"a","creationTimestamp":")" + time + R"("}})");
    ASSERT_TRUE(decoded.has_value()) << decoded.error();
    EXPECT_EQ(widget(*decoded).created, async::WallTime{});
  }
}

TEST(Projection, RefusesBrokenJsonNamingTheByte) {
  for (const std::string bytes :
       {"", "[]", "{", R"({"metadata")", R"({"metadata":{"name":"a})", R"({"metadata":{"name":"a"})",
        R"({"metadata":{"name":"\x"}})", R"({"metadata":{"name":"a"}}})", R"({"spec":{"size":}})",
        "{\"metadata\":{\"name\":\"\xff\"}}", R"({"spec":{"parts":[{]}})"}) {
    const auto decoded = widget_decoder().from_bytes(bytes);
    ASSERT_FALSE(decoded.has_value()) << bytes;
    EXPECT_EQ(decoded.error().kind, ErrorKind::bad_response);
    EXPECT_THAT(decoded.error().message, HasSubstr("at byte"));
  }
}

TEST(Projection, SurvivesNestingOfAnyDepth) {
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(widget_decoder().from_bytes(R"({"spec":{"parts":)" + deep).has_value());
  EXPECT_TRUE(
      widget_decoder().from_bytes(R"({"spec":{"parts":[)" + deep + std::string(deep.size(), ']') + "]}}").has_value());
}

TEST(Projection, ABookmarkHasAVersionButNoObject) {
  const auto decoded = widget_decoder().from_bytes(R"({"metadata":{"resourceVersion":"9","creationTimestamp":null}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(decoded->resource_version, "9");
  EXPECT_EQ(decoded->object, nullptr);
}

TEST(Projection, DecodesObjectsInMemoryInTheSameWay) {
  const Object object{json::parse(R"({"metadata":{"name":"a","namespace":"n"},"spec":{"color":"ü"}})").as_object()};
  const auto decoded = widget_decoder().from_object(object);
  ASSERT_TRUE(decoded.has_value()) << decoded.error();
  EXPECT_EQ(decoded->key, (Key{"n", "a"}));
  EXPECT_EQ(widget(*decoded).color, "ü");
}

TEST(StringPool, GivesOneNumberPerString) {
  const auto first = StringPool::intern("projection-test/a");
  const auto second = StringPool::intern("projection-test/b");
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(StringPool::intern("projection-test/a"), first);
  EXPECT_EQ(StringPool::text(*first), "projection-test/a");
  EXPECT_EQ(StringPool::text(StringPool::empty), "");
}

TEST(StringPool, RefusesLongStrings) {
  EXPECT_EQ(StringPool::intern(std::string(StringPool::longest + 1, 'x')), std::nullopt);
}

// They are often half of an object, and nothing here reads them.
TEST(ObjectDecoder, ManagedFieldsAreSkippedUnread) {
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  for (const auto& fields : {std::string{"[]"}, std::string{"null"}, deep}) {
    auto decoded = object_decoder().from_bytes(R"({"metadata":{"labels":{"a":"b"},"managedFields":)" + fields +
                                               R"(,"name":"n"},"spec":{"managedFields":[1]}})");
    ASSERT_TRUE(decoded) << decoded.error();
    EXPECT_EQ(boost::json::serialize(static_cast<const Object*>(decoded->object.get())->json()),
              R"({"metadata":{"labels":{"a":"b"},"name":"n"},"spec":{"managedFields":[1]}})");
  }
  for (const auto* broken : {R"({"metadata":{"managedFields":[}})", R"({"metadata":{"managedFields")",
                             R"({"metadata":{"managedFields":[]},"spec":{)"}) {
    auto decoded = object_decoder().from_bytes(broken);
    ASSERT_FALSE(decoded) << broken;
    EXPECT_EQ(decoded.error().kind, ErrorKind::bad_response);
  }
}

}  // namespace
}  // namespace hubferry::kube

namespace hubferry::ocm {
namespace {

std::shared_ptr<const ManagedCluster> decode(std::string_view bytes) {
  auto decoded = kube::object_decoder().from_bytes(bytes);
  EXPECT_TRUE(decoded.has_value()) << "the test's own JSON is broken";
  auto projected = managed_cluster_decoder().from_bytes(bytes);
  EXPECT_TRUE(projected.has_value()) << projected.error();
  return std::static_pointer_cast<const ManagedCluster>(projected->object);
}

TEST(ManagedCluster, KeepsWhatMigrationsUse) {
  const auto cluster = decode(
      R"({"metadata":{"name":"c1","uid":"u-1","resourceVersion":"7","generation":3,)"
      R"("deletionTimestamp":"2030-01-02T03:04:05Z","finalizers":["a/b","c/d"],)"
      R"("labels":{"vendor":"OpenShift","empty":""},)"
      R"("annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}",)"
      R"("import.open-cluster-management.io/disable-auto-import":"","hubferry.io/migration":"ns/m"}},)"
      R"("spec":{"hubAcceptsClient":true,"leaseDurationSeconds":60,"managedClusterClientConfigs":[{"url":"https://x"}]},)"
      R"("status":{"conditions":[{"type":"HubAcceptedManagedCluster","status":"True","reason":"HubClusterAdminAccepted",)"
      R"("lastTransitionTime":"2030-01-01T00:00:00Z","message":"m"},{"type":"ManagedClusterConditionAvailable",)"
      R"("status":"Unknown","reason":"ManagedClusterLeaseUpdateStopped"}]}})");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->name(), "c1");
  EXPECT_EQ(cluster->uid(), "u-1");
  EXPECT_EQ(cluster->resource_version(), "7");
  EXPECT_EQ(cluster->generation(), 3);
  EXPECT_TRUE(cluster->is_being_deleted());
  EXPECT_EQ(cluster->deletion_time(), async::parse_time("2030-01-02T03:04:05Z"));
  EXPECT_TRUE(cluster->hub_accepts_client());
  EXPECT_EQ(cluster->lease_duration_seconds(), 60);
  EXPECT_EQ(cluster->client_url(), "https://x");
  EXPECT_EQ(cluster->label("vendor"), "OpenShift");
  EXPECT_EQ(cluster->label("empty"), "");
  EXPECT_EQ(cluster->label("absent"), std::nullopt);
  EXPECT_EQ(cluster->annotation("hubferry.io/migration"), "ns/m");
  EXPECT_EQ(cluster->annotation("import.open-cluster-management.io/disable-auto-import"), "");
  EXPECT_EQ(cluster->annotation("kubectl.kubernetes.io/last-applied-configuration"), std::nullopt);
  EXPECT_TRUE(cluster->has_finalizer("c/d"));
  EXPECT_FALSE(cluster->has_finalizer("c"));
  EXPECT_TRUE(cluster->is_true("HubAcceptedManagedCluster"));
  EXPECT_FALSE(cluster->is_true("ManagedClusterConditionAvailable"));
  const auto available = cluster->condition("ManagedClusterConditionAvailable");
  ASSERT_TRUE(available);
  EXPECT_EQ(available->status, ConditionStatus::unknown);
  EXPECT_EQ(available->reason, "ManagedClusterLeaseUpdateStopped");
  EXPECT_EQ(cluster->condition("HubAcceptedManagedCluster")->last_transition,
            async::parse_time("2030-01-01T00:00:00Z"));
  EXPECT_EQ(cluster->condition("absent"), std::nullopt);
}

TEST(ManagedCluster, TakesAnObjectWithNothingInIt) {
  const auto cluster = decode(R"({"metadata":{"name":"bare"}})");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->name(), "bare");
  EXPECT_EQ(cluster->uid(), "");
  EXPECT_EQ(cluster->client_url(), "");
  EXPECT_FALSE(cluster->is_being_deleted());
  EXPECT_EQ(cluster->deletion_time(), std::nullopt);
  EXPECT_FALSE(cluster->hub_accepts_client());
  EXPECT_EQ(cluster->label("x"), std::nullopt);
}

TEST(ManagedCluster, KeepsKeysThatThePoolRefuses) {
  const std::string key(1000, 'k');
  const auto cluster = decode(R"({"metadata":{"name":"c","labels":{")" + key + R"(":"v"}}})");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->label(key), "v");
  int labels = 0;
  cluster->for_each_label([&](std::string_view, std::string_view) { ++labels; });
  EXPECT_EQ(labels, 1);
}

}  // namespace
}  // namespace hubferry::ocm
