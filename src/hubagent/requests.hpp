#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "hubferry/async/backoff.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubagent/outcome.hpp"
#include "hubferry/kube/edit.hpp"

/// Requests to a hub's API server. with_retry() is the one retry loop of all hub operations:
///
///   where         every request of an operation
///   on what       kube::is_transient(): retry_later, unreachable, conflict, gone, ambiguous; with jittered backoff, or
///                 after the server's Retry-After
///   how long      HubOptions::busy_timeout (90 s) from the first failure; unreachable_timeout (30 s) from when the hub
///                 stopped answering
///   what users    while it lasts: nothing. Then the failure of one cluster in the ledger and the migration's status;
///   or, see           where the hub as a whole does not answer, an error of the operation, which the migration's phase
///                 retries until its own timeout
///
/// Operations are also restarted when the hub's connection is replaced: see hubs::on_source().
namespace hubferry::hubagent {

using async::Awaitable;
using kube::ErrorKind;
using kube::Key;
using kube::Object;
using kube::Resource;
namespace json = kube::json;

/// The key of an object of a cluster-scoped kind.
inline Key cluster_scoped(std::string name) {
  return {{}, std::move(name)};
}

/// "BareMetalHost c1/host", for messages.
std::string described(const Resource& resource, const Key& key);

/// The object is not any more what was to be deleted.
Error changed_meanwhile(const Hub& hub, const Resource& resource, const Key& key);

/// How long one request is retried, and how soon.
class RetryBudget {
 public:
  explicit RetryBudget(const Hub& hub);

  /// Waits for the time of another attempt. False, at once, if the error is not transient or the budget is used up.
  Awaitable<bool> wait_before_retry(kube::Error error);

 private:
  async::Clock& clock_;
  async::Duration busy_timeout_;
  async::Duration unreachable_timeout_;
  async::Backoff backoff_;
  std::optional<async::TimePoint> first_failure_;
  std::optional<async::TimePoint> unreachable_since_;  // absent: the last error was an answer
};

/// Repeats `attempt()` within the retry budget. It must be safe to repeat after an ambiguous result.
template <typename Attempt>
auto with_retry(const Hub& hub, Attempt attempt) -> std::invoke_result_t<Attempt&> {
  RetryBudget budget{hub};
  while (true) {
    auto result = co_await attempt();
    if (result) co_return result;
    const bool again = co_await budget.wait_before_retry(result.error());
    if (!again) co_return result;
  }
}

// One request each, with retries. Errors say what could not be done.

/// nullopt if there is no such object, or no such kind.
Awaitable<Result<std::optional<Object>>> get_if_exists(const Hub& hub, Resource resource, Key key);
/// Empty for a kind that the hub does not serve.
Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns,
                                            std::string label_selector = {});
/// The same objects. Clusters that are processed at once share one list of the whole hub where the selector picks few
/// objects there (SharedLooks); it is as new as one of the namespace.
Awaitable<Result<std::vector<Object>>> list_few(const Hub& hub, Resource resource, std::string ns,
                                                std::string label_selector);
/// list() of several kinds at once, in the order of `resources`: a cluster waits once for the lists that it shares with
/// others, and not for one after the other.
Awaitable<std::vector<Result<std::vector<Object>>>> list_each(const Hub& hub, std::vector<Resource> resources,
                                                              std::string ns);
/// kube::edit(); conflicts are retried until the budget is used up.
Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Key key, kube::Mutation mutate);
Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Object known, kube::Mutation mutate);
/// The same, where an object that is gone needs no edit.
Awaitable<Result<>> edit_if_exists(const Hub& hub, Resource resource, Object known, kube::Mutation mutate);
Awaitable<Result<kube::Written>> create_or_patch(const Hub& hub, Resource resource, Key key, kube::Mutation mutate);
/// One DELETE of this very object, in the version in which it was read. Returns what is left: nothing, or the object
/// that finalizers still hold. Conflict: it is not any more as it was read.
Awaitable<kube::Result<std::optional<Object>>> delete_as_read(const Hub& hub, Resource resource, Object object);

/// Whether an object that somebody has changed since it was read is still to be deleted.
using StillDeletable = std::function<bool(const Object& current)>;
/// The same until it succeeds; it is no error if the object is gone. If somebody has changed it meanwhile, it is read
/// again; by default it is deleted if it belongs to the same migration as before, or still to none. Not for kinds whose
/// deletion does more than to remove them: see delete_prepared().
Awaitable<Result<std::optional<Object>>> delete_object(const Hub& hub, Resource resource, Object object);
Awaitable<Result<std::optional<Object>>> delete_object(const Hub& hub, Resource resource, Object object,
                                                       StillDeletable still_deletable);

/// Brings an object into the state in which it may be deleted, and returns it as it is then; absent: it is gone. An
/// error: it must not be deleted.
using Prepare = std::function<Awaitable<Result<std::optional<Object>>>(Object current)>;
/// Deletes an object in the very version that `prepare` returned. If somebody changes it in between, it is read and
/// prepared again.
Awaitable<Result<std::optional<Object>>> delete_prepared(const Hub& hub, Resource resource, Object object,
                                                         Prepare prepare);
/// Whether the hub serves this kind; a "no" is not cached.
Awaitable<Result<bool>> serves(const Hub& hub, Resource resource);

}  // namespace hubferry::hubagent
