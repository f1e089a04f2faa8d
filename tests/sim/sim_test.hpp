#pragma once

#include <gtest/gtest.h>

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/json/parse.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/sim/server.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::sim {

namespace json = boost::json;
using async::Awaitable;
using kube::ErrorKind;
using kube::Key;
using namespace std::chrono_literals;

inline const kube::Resource widgets{"example.com", "v1", "widgets", "Widget", true};

/// A namespaced kind with a status and validation; from JSON, as users write it.
inline json::object widget_definition() {
  return boost::json::parse(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
      "group": "example.com", "scope": "Namespaced",
      "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
      "versions": [{
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "additionalPrinterColumns": [
          {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
          {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
          "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 100},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
            "tags": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string"}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
              "items": {"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "more": {"type": "object", "additionalProperties": {"type": "string"}}}},
          "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}
      }]}})")
      .as_object();
}

inline json::object widget(std::string_view name, int size = 1, std::string_view ns = "default") {
  return {{"metadata", json::object{{"name", name}, {"namespace", ns}}}, {"spec", json::object{{"size", size}}}};
}

inline json::object config_map(std::string_view name, std::string_view ns = "default") {
  return {{"metadata", json::object{{"name", name}, {"namespace", ns}}}, {"data", json::object{{"a", "1"}}}};
}

inline Options server_named(std::string name) {
  Options options;
  options.name = std::move(name);
  return options;
}

/// A server on virtual time with the kind Widget.
class SimTest : public testing::Test {
 protected:
  void SetUp() override {
    auto install = [&]() -> Awaitable<> {
      auto created = co_await api_.create(kube::resources::custom_resource_definitions, widget_definition());
      EXPECT_TRUE(created) << created.error();
    };
    loop_.run(install());
    loop_.run_ready();
  }

  async::VirtualLoop loop_;
  async::VirtualClock& clock_ = loop_.clock();
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  Server server_{Options{}, env_};
  kube::Api& api_ = server_.api();
};

}  // namespace hubferry::sim
