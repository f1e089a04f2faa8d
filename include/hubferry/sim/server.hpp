#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/sim/faults.hpp"

namespace hubferry::sim {

class Core;

/// The user of a request. Members of system:masters may do everything, others what RBAC allows.
struct User {
  std::string name;
  std::vector<std::string> groups;
  std::string uid;
};

/// The user of Server::api().
User admin();

struct Options {
  std::string name = "sim";
  /// For generated names, uids and faults. Absent: drawn from the environment's generator.
  std::optional<std::uint64_t> seed{};
  /// How many changes of each kind are kept for watches.
  std::size_t history = 10'000;
  /// How many events are buffered for a slow watcher before the server closes its watch.
  std::size_t watch_buffer = 10'000;
  /// Latency of every request; faults add to it.
  Latency latency{};
  async::Duration bookmark_interval = std::chrono::seconds{60};
  /// The field manager of requests that name none.
  std::string field_manager = "hubferry";
  /// Keep a record of every request (Server::requests, Server::timeline).
  bool record_requests = true;
};

/// One line of the timeline.
struct RequestRecord {
  async::TimePoint at;
  std::string user;
  std::string verb;
  std::string resource;  // plural.group
  std::string subresource;
  kube::Key key;
  std::string outcome;         // "ok rv=17", "409 Conflict", "reset"
  std::uint64_t sequence = 0;  // among the records of all servers of this process
};

/// A write that is about to be stored, as an admission webhook sees it.
struct AdmissionReview {
  const User& user;
  const kube::Object* before = nullptr;  // null: it is a create
  const kube::json::object& after;
  /// Whether the user is allowed to do that too, as a webhook checks with a SubjectAccessReview.
  std::function<bool(const std::string& verb, const kube::Resource& resource, const kube::Key& key,
                     const std::string& subresource)>
      may;
  std::function<std::optional<kube::Object>(const kube::Resource& resource, const kube::Key& key)> find;
};
/// Nothing: the write is allowed. Otherwise why it is forbidden.
using Admission = std::function<std::optional<std::string>(const AdmissionReview&)>;

/// A change of an object, after it was stored.
struct ObservedWrite {
  const std::string& user;  // empty: the server itself, as when it collects garbage
  const kube::Resource& resource;
  const kube::Object* before = nullptr;  // null: created
  const kube::Object* after = nullptr;   // null: erased
};
using WriteObserver = std::function<void(const ObservedWrite&)>;

/// A simulated Kubernetes API server: an in-memory store with the behaviour that controllers rely on, served as a
/// kube::Api in the same thread (here), or over HTTP (http_frontend.hpp).
///
/// Implemented: versions, optimistic concurrency, generations, generateName, the status subresource, finalizers,
/// garbage collection by owner references, namespace deletion, selectors, consistent paging, list and watch by
/// resourceVersion with bounded history, bookmarks and initial events, all patch types and server-side apply, dry
/// run, CRDs with structural schemas, RBAC, access reviews, service account tokens, certificate signing.
///
/// Not implemented: admission webhooks (but see add_admission()), CEL rules (x-kubernetes-validations, validating
/// policies), conversion webhooks (versions of a kind differ in apiVersion only), validation of built-in kinds beyond
/// names and metadata, controllers that run things (pods stay as they are written, no default service accounts),
/// aggregated ClusterRoles, escalation checks of RBAC, deletecollection's paging, quotas, priority and fairness,
/// graceful deletion of pods, the scale subresource, protobuf (but for a few kinds), exec and logs. managedFields are
/// kept, but only returned when a single object is read over HTTP. Background work (garbage collection, establishing a
/// CRD, signing) is done in later turns of the loop.
///
/// Lifetime: watches and Apis may outlive it; `env` outlives all of them.
/// Executor: the loop on which it is first called; everything happens there.
class Server {
 public:
  Server(Options options, kube::Env env);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// As admin. Calls complete in a later turn of the loop, never immediately.
  kube::Api& api();
  std::unique_ptr<kube::Api> api_as(User user);

  Faults& faults();
  /// Breaks up to `most` watches, the oldest first. Returns how many.
  std::size_t cut_watches(std::size_t most = SIZE_MAX);
  /// Drops all history: every older resourceVersion and continue token is expired.
  void compact();
  /// While down, the server is unreachable and open watches are broken.
  void outage(bool down);

  /// Called before each write of this kind, other than to subresources.
  void add_admission(const kube::Resource& resource, Admission admission);

  /// Called after every write, before its sender has the answer: for invariants. It must not write. Replaces the last.
  void observe_writes(WriteObserver observer);

  /// Generated names, latencies and faults follow this seed from now on.
  void reseed(std::uint64_t seed);

  /// A bearer token for the HTTP frontend that does not expire.
  std::string add_token(User user);

  // For tests and reports; they bypass permissions, faults and the timeline.
  [[nodiscard]] std::vector<kube::Object> objects(const kube::Resource& resource, const std::string& ns = {}) const;
  [[nodiscard]] std::optional<kube::Object> object(const kube::Resource& resource, const kube::Key& key) const;
  [[nodiscard]] std::size_t count(const kube::Resource& resource) const;
  [[nodiscard]] std::int64_t resource_version() const;
  [[nodiscard]] std::size_t open_watches() const;
  [[nodiscard]] const std::vector<RequestRecord>& requests() const;
  void forget_requests();
  /// From now on oneOf, anyOf and the CEL rules of CRDs are not enforced: servers before 1.25 do not know CEL, and an
  /// object may be older than a rule.
  void ignore_validation_rules();
  /// All requests, one per line, without anything that differs between two runs of one seed.
  [[nodiscard]] std::string timeline() const;

  [[nodiscard]] const std::string& name() const;
  /// For the HTTP frontend.
  [[nodiscard]] const std::shared_ptr<Core>& core() const { return core_; }

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<kube::Api> admin_;
};

/// The timelines of several servers merged in order; each line begins with its server.
std::string merged_timeline(const std::vector<const Server*>& servers);

}  // namespace hubferry::sim
