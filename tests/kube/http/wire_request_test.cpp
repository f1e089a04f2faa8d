#include "kube/http/wire_request.hpp"

#include <gtest/gtest.h>

namespace hubferry::kube::http {
namespace {

Request request_for(Verb verb) {
  Request request;
  request.verb = verb;
  request.resource = resources::config_maps;
  request.key = {"ns", "a"};
  request.body = json::object{{"data", json::object{}}};
  return request;
}

TEST(WireRequest, AGetHasNeitherBodyNorParameters) {
  const auto wire = wire_request(request_for(Verb::get), "hubferry");
  EXPECT_EQ(wire.method, "GET");
  EXPECT_EQ(wire.path, "/api/v1/namespaces/ns/configmaps/a");
  EXPECT_EQ(wire.query, "");
  EXPECT_EQ(wire.body, "");
  EXPECT_TRUE(wire.read_only);
}

TEST(WireRequest, EachKindOfPatchHasItsContentType) {
  auto request = request_for(Verb::patch);
  EXPECT_EQ(wire_request(request, "m").content_type, "application/merge-patch+json");
  request.patch_type = PatchType::json;
  EXPECT_EQ(wire_request(request, "m").content_type, "application/json-patch+json");
  request.patch_type = PatchType::strategic;
  EXPECT_EQ(wire_request(request, "m").content_type, "application/strategic-merge-patch+json");
  request.verb = Verb::apply;
  const auto apply = wire_request(request, "m");
  EXPECT_EQ(apply.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(apply.method, "PATCH");
  EXPECT_FALSE(apply.read_only);
}

TEST(WireRequest, WritesNameTheirFieldManager) {
  auto request = request_for(Verb::apply);
  request.force = true;
  request.dry_run = true;
  EXPECT_EQ(wire_request(request, "us").query, "?fieldManager=us&dryRun=All&force=true");
  request.field_manager = "some one";
  request.verb = Verb::update;
  EXPECT_EQ(wire_request(request, "us").query, "?fieldManager=some%20one&dryRun=All");
}

TEST(WireRequest, ADeleteCarriesItsConditionsInTheBody) {
  auto request = request_for(Verb::remove);
  request.propagation = Propagation::foreground;
  request.precondition_uid = "u";
  request.precondition_resource_version = "5";
  request.dry_run = true;
  const auto wire = wire_request(request, "us");
  EXPECT_EQ(wire.method, "DELETE");
  EXPECT_EQ(wire.body, R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground",)"
                       R"("dryRun":["All"],"preconditions":{"uid":"u","resourceVersion":"5"}})");
}

TEST(WireRequest, AListSaysHowFreshItMustBe) {
  ListOptions options;
  options.ns = "ns";
  options.label_selector = "a=b,c!=d";
  options.resource_version = "0";
  options.continue_token = "x/y";
  const auto wire = wire_request(resources::config_maps, options);
  EXPECT_EQ(wire.path, "/api/v1/namespaces/ns/configmaps");
  EXPECT_EQ(wire.query, "?labelSelector=a%3Db%2Cc%21%3Dd&limit=500&continue=x%2Fy&resourceVersion=0");
  EXPECT_EQ(wire.verb, "LIST");
}

TEST(WireRequest, AWatchAsksForBookmarksAndNoCompression) {
  WatchOptions options;
  options.resource_version = "9";
  options.timeout = std::chrono::seconds{300};
  options.field_selector = "metadata.name=a";
  const auto wire = wire_request(resources::config_maps, options);
  EXPECT_EQ(
      wire.query,
      "?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=9&allowWatchBookmarks=true&timeoutSeconds=300");
  EXPECT_FALSE(wire.gzip);
}

TEST(WireRequest, AWatchListNamesTheMatchThatTheServerInsistsOn) {
  WatchOptions options;
  options.send_initial_events = true;
  options.bookmarks = false;
  EXPECT_EQ(wire_request(resources::config_maps, options).query,
            "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
}

TEST(WireRequest, APathKeepsItsQuery) {
  const auto wire = wire_request("/readyz?verbose");
  EXPECT_EQ(wire.path, "/readyz");
  EXPECT_EQ(wire.query, "?verbose");
  EXPECT_EQ(wire.display(), "GET /readyz");
}

}  // namespace
}  // namespace hubferry::kube::http
