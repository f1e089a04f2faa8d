#pragma once

#include <type_traits>
#include <utility>

#include "hubagent/failure.hpp"
#include "hubferry/async/backoff.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/kube/edit.hpp"

namespace hubferry::hubagent {

using async::Awaitable;
using kube::Key;
using kube::Object;
using kube::Resource;
using kube::Result;
namespace json = kube::json;

/// The key of an object of a cluster-scoped kind.
inline Key cluster_scoped(std::string name) {
  return {{}, std::move(name)};
}

/// How long one call is repeated, and how soon.
class Patience {
 public:
  explicit Patience(const Hub& hub);

  /// Waits for the time of another attempt. False, at once, for an error that will not go away, and when it has lasted
  /// longer than the hub's patience with its kind.
  Awaitable<bool> again(Error error);

 private:
  async::Clock& clock_;
  async::Duration busy_;
  async::Duration unreachable_;
  async::Backoff backoff_;
  std::optional<async::TimePoint> first_failure_;
};

/// Repeats `attempt()` while that can help. It must be safe to repeat after an ambiguous end.
template <typename Attempt>
auto retried(const Hub& hub, Attempt attempt) -> std::invoke_result_t<Attempt&> {
  Patience patience{hub};
  while (true) {
    auto result = co_await attempt();
    if (result) co_return result;
    const bool again = co_await patience.again(result.error());
    if (!again) co_return result;
  }
}

// One call each, repeated with patience. Errors say what could not be done, for people.

Awaitable<Result<Object>> read(const Hub& hub, Resource resource, Key key);
/// nullopt where there is no such object, or no such kind.
Awaitable<Result<std::optional<Object>>> read_if_there(const Hub& hub, Resource resource, Key key);
/// Empty for a kind that the hub does not serve.
Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns);
Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns,
                                            std::string label_selector);
/// kube::edit(); conflicts are fought out for as long as patience lasts.
Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Key key, kube::Mutation mutate);
Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Object known, kube::Mutation mutate);
/// The same, where an object that is gone needs no edit.
Awaitable<Result<>> edit_if_there(const Hub& hub, Resource resource, Object known, kube::Mutation mutate);
Awaitable<Result<kube::Written>> create_or_patch(const Hub& hub, Resource resource, Key key, kube::Mutation mutate);
/// Deletes this very object (by uid); one that is gone is fine. Says what is left of it: nothing, or the object that
/// finalizers still hold.
Awaitable<Result<std::optional<Object>>> remove(const Hub& hub, Resource resource, Object object);
/// Asked anew each time, unless the answer was yes.
Awaitable<Result<bool>> serves(const Hub& hub, Resource resource);
/// The kinds that travel, as far as the hub serves them.
Awaitable<Result<CarriedResources>> served_kinds(const Hub& hub);

}  // namespace hubferry::hubagent
