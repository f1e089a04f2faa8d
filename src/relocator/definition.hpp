#pragma once

#include <unordered_map>

#include "hubferry/phase/default_definition.hpp"
#include "hubferry/relocator/controller.hpp"
#include "relocator/copy.hpp"
#include "relocator/release.hpp"
#include "relocator/reporter.hpp"

namespace hubferry::relocator {

/// An API server gives up a request after that time.
inline constexpr auto longest_request = std::chrono::seconds{60};

/// What the handlers share.
struct Services {
  Services(kube::Api& of_source, hubs::Connect connect, const ControllerOptions& options, const kube::Env& given);

  /// For each controller that starts, before its first machine.
  Awaitable<> begin();
  /// The ClusterDeployments that a relocator matches, and those that move under its name: they may have to return.
  [[nodiscard]] std::vector<Key> concerned(const Object& relocator) const;
  /// A ClusterDeployment has changed. Null: it did not, or does not exist.
  void observe(const Deployment* old, const Deployment* now);

  kube::Api& source;
  kube::Env env;
  Destinations destinations;
  Slots slots;
  Reporter reporter;
  Releases releases;
  const ObjectCache* relocators = nullptr;
  SourceCaches caches = {};
  Reporter::Deployments deployments = {};
  phase::ControllerCore* controller = nullptr;

  std::unordered_map<Key, unsigned> failures = {};  // in a row, for the pauses between retries
  std::unordered_map<Key, async::TimePoint> condition_written = {};

  /// A create that got no answer may still be executed: until then the absence of a copy proves nothing. The first: for
  /// the requests of a predecessor.
  async::TimePoint no_abort_before = {};
  std::unordered_map<Key, async::TimePoint> unanswered_until = {};

  /// Until then Hive's own relocation controller is known not to delete what is annotated as relocated.
  async::TimePoint hive_deletes_nothing_before = {};

  // Hive's own ClusterRelocates, read when needed and valid for some seconds.
  std::vector<Object> hive_relocates = {};
  std::optional<async::TimePoint> hive_relocates_read = {};
};

using Definition = phase::DefaultDefinition<Services, Deployment>;
using Handler = phase::Handler<Services, Deployment>;
using Context = phase::Context<Services>;
using phase::ReconcileState;

/// The phases, every transition, and the handlers.
void declare(Definition& definition);

// The handlers, one for each phase.
Awaitable<ReconcileState> match(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> check(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> mark(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> copy_all(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> finish(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> remove_from_source(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> abort_move(Context& context, Deployment& deployment, const phase::State&);
Awaitable<ReconcileState> release(Context& context, Deployment& deployment, const phase::State&);

// The rules of Checking, which a plan uses too.

/// What is in the way in the ClusterDeployment itself.
std::optional<Problem> deployment_problem(const Object& deployment);
/// That, and what else is in the way on the source.
Awaitable<std::optional<Problem>> source_problem(Services& services, const Object& deployment);
/// AbortBlocked, if it moves to another hub than this one: that hub may have it.
std::optional<Problem> repointed(const Destination& destination, const Object& deployment);
/// What is in the way on the destination.
std::optional<Problem> destination_problem(const Look& look, const Destination& destination, const Object& deployment);
/// That a ClusterRelocate of the destination's Hive would move it on at once. An account that may not list them finds
/// none.
std::optional<Problem> onward_problem(const Destination& destination, const Object& deployment);
/// SelectorSyncSets that match it and that the destination lacks. Errors: of the destination.
Awaitable<kube::Result<std::vector<std::string>>> missing_sync_sets(Services& services, Object deployment,
                                                                    std::shared_ptr<Destination> destination);

// What they have in common.

/// Until the next attempt, after that many failures in a row.
Duration pause_after(unsigned failures);

/// Sets the condition RelocationFailed.
void set_condition(Context& context, Deployment& deployment, kube::ConditionStatus status, std::string_view reason,
                   std::string_view message);
/// Sets the condition to True with the problem, and retries later.
ReconcileState fail(Context& context, Deployment& deployment, const Problem& problem);
/// Retries soon, without a condition: after a conflict or an error of the source hub.
ReconcileState retry(const phase::Written& written);

/// Annotates the ClusterDeployment. Nullopt: done. Otherwise what the handler returns. `destination`: where a move
/// begins to.
Awaitable<std::optional<ReconcileState>> annotate(Context& context, Deployment& deployment, Stage stage,
                                                  const std::string& relocator, const std::string& destination = {});
/// Its DNSZone; nullopt: it has none. Errors: of the source hub.
Awaitable<kube::Result<std::optional<Object>>> find_zone(kube::Api& source, const Object& deployment);
/// True if the DNSZone has the annotations of that stage.
bool is_annotated(const Object& zone, Stage stage, const std::string& relocator);
/// Annotates its DNSZone, if it has one. Errors: of the source hub.
Awaitable<kube::Result<bool>> annotate_zone(Context& context, Deployment& deployment, Stage stage,
                                            const std::string& relocator);

}  // namespace hubferry::relocator
