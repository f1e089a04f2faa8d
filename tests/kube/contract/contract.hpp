#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::contract {

using namespace kube;
using namespace std::chrono_literals;
namespace asio = async::asio;

/// What a backend does otherwise than a real API server, each with its reason. Nothing else may differ.
enum class Difference {
  /// The direct API of the simulator takes a user, not a credential: nobody can be unauthorized there.
  no_credentials,
  /// The simulator keeps built-in kinds as JSON, and checks only their names and metadata: controllers under test send
  /// what clients of a typed API would, and schemas of all kinds would double its size.
  untyped_built_in_kinds,
  /// The simulator deletes dependents in the same step, where a real server leaves a finalizer for the garbage
  /// collector: what controllers see in the end is the same.
  orphans_at_once,
};

/// A server, and three ways into it.
class ContractWorld {
 public:
  virtual ~ContractWorld() = default;

  virtual Api& admin() = 0;
  /// Somebody whom the server knows, and who has no rights.
  virtual Api& nobody() = 0;
  /// Somebody with a wrong credential; nullptr where there are no credentials.
  virtual Api* stranger() = 0;
  /// Makes the server forget its history up to now.
  virtual Awaitable<> compact() = 0;
  virtual Env env() = 0;
  virtual void run(Awaitable<> task) = 0;
  [[nodiscard]] virtual bool differs(Difference) const { return false; }
  /// True where no namespace controller removes what a deleted namespace held.
  [[nodiscard]] virtual bool namespaces_need_help() const { return false; }
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<ContractWorld>()> make;

  friend void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }
};

/// An open watch, one event at a time.
class Watching {
 public:
  Watching(std::unique_ptr<WatchStream> stream, async::Clock& clock) : stream_(std::move(stream)), clock_(clock) {}

  /// The next event that is no bookmark. Throws when the stream ends or fails, or after 20 seconds.
  Awaitable<WatchEvent> next();
  /// The next event of any type; nullopt when the server ends the stream in good order.
  Awaitable<Result<std::optional<WatchEvent>>> next_of_any_type();

 private:
  std::unique_ptr<WatchStream> stream_;
  async::Clock& clock_;
  std::vector<WatchEvent> pending_;
  std::size_t taken_ = 0;
};

/// "ADDED a", "MODIFIED a" …
std::string to_text(const WatchEvent& event);
const Object& object_of(const WatchEvent& event);
const Object& object_of(const Decoded& decoded);

/// One case: its own world, its own namespace.
class KubeContract : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { world_ = GetParam().make(); }
  /// Makes the namespace, runs `body`, and removes what was made, also when the body fails.
  void run(std::function<Awaitable<>()> body);

  ContractWorld& world() { return *world_; }
  Api& api() { return world_->admin(); }
  async::Clock& clock() { return clock_of(); }
  const std::string& ns() const { return ns_; }
  Key key(std::string name) const { return {ns_, std::move(name)}; }

  /// A ConfigMap in the case's namespace.
  json::object config_map(std::string_view name, std::string_view value = "v") const;
  json::object labelled(std::string_view name, std::string_view label, std::string_view value) const;
  Awaitable<Object> make_config_map(std::string name, std::string value);
  Awaitable<Object> make_config_map(std::string name) { return make_config_map(std::move(name), "v"); }
  Request request(Verb verb, const Resource& resource, Key key) const;
  /// Names of all ConfigMaps that match, in the order of the list.
  Awaitable<std::vector<std::string>> names(ListOptions options);
  ListOptions here() const;

  /// Opens a watch of ConfigMaps in the namespace, from the version of a list made now.
  Awaitable<Watching> watch(WatchOptions options);
  Awaitable<Watching> watch() { return watch(WatchOptions{}); }
  Awaitable<Result<std::unique_ptr<WatchStream>>> open(const Resource& resource, WatchOptions options);
  /// How the stream from `version` ends: nullopt when it did not end in an error.
  Awaitable<std::optional<Error>> watch_error(const Resource& resource, std::string version);

  /// Installs widgets.<group>, waits until they are served, and removes them after the case.
  Awaitable<Resource> install_widgets();
  json::object widget(std::string_view name, json::object spec) const;
  /// Tries again until `done` holds, for 20 seconds.
  Awaitable<bool> eventually(std::function<Awaitable<bool>()> done);

  /// Also done when the case fails.
  void at_end(Resource resource, Key key) { cleanup_.emplace_back(std::move(resource), std::move(key)); }

 private:
  async::Clock& clock_of();
  Awaitable<> run_in_namespace(std::function<Awaitable<>()> body);
  Awaitable<> clean_up();

  std::unique_ptr<ContractWorld> world_;
  std::string ns_;
  std::vector<std::pair<Resource, Key>> cleanup_;
};

template <typename T>
void expect_error(const Result<T>& result, ErrorKind kind, std::source_location at = std::source_location::current()) {
  if (result.has_value())
    ADD_FAILURE_AT(at.file_name(), static_cast<int>(at.line())) << "succeeded, but should be: " << to_string(kind);
  else if (result.error().kind != kind)
    ADD_FAILURE_AT(at.file_name(), static_cast<int>(at.line()))
        << "should be: " << to_string(kind) << "\n       is: " << result.error();
}

/// A name that no other case and no other process uses.
std::string unique_name(std::string_view prefix);

/// Every test that is written once and runs on each of the executable's backends.
#define INSTANTIATE_CONTRACT(backends)                                    \
  INSTANTIATE_TEST_SUITE_P(On, KubeContract, testing::ValuesIn(backends), \
                           [](const auto& info) { return info.param.name; })

}  // namespace hubferry::contract
