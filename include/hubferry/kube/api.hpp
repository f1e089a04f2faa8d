#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/kube/decoder.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::kube {

using async::Awaitable;
using async::Duration;
using async::TimePoint;

enum class Verb { get, create, update, patch, apply, remove };

enum class PatchType { merge, json, strategic };

/// metav1.DeletionPropagation.
enum class Propagation { server_default, background, foreground, orphan };

/// The object with apiVersion and kind, as a body must have them: callers need not repeat what the resource says.
json::object with_type(const Resource& resource, json::object object);

/// One request on one object (or, for a create, on its collection). Filled by the helpers of Api; implementations
/// carry it out.
struct Request {
  Verb verb = Verb::get;
  Resource resource;
  Key key;  // for a create: the namespace; the name comes from the body
  std::string subresource;
  json::value body;                                       // create, update, patch, apply
  PatchType patch_type = PatchType::merge;                // patch
  std::string field_manager;                              // empty: the Api's default
  bool force = false;                                     // apply: take fields over from other managers
  bool dry_run = false;                                   // validate and answer, change nothing
  Propagation propagation = Propagation::server_default;  // remove
  std::string precondition_uid;                           // remove: only this very object
  std::string precondition_resource_version;              // remove: only in this state
  TimePoint deadline = TimePoint{};                       // zero: the Api's default
};

/// True unless the request is about one object and does not name it. With an empty name its URL would be that of the
/// collection: a DELETE would delete all objects. Each kube::Api refuses such a request with unnamed(), before sending.
[[nodiscard]] bool names_one_object(const Request& request);
[[nodiscard]] Error unnamed(const Request& request);

/// How fresh a list must be.
struct ListOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  int limit = 500;
  std::string continue_token;
  /// Absent: the newest (a quorum read). "0": whatever the server's cache holds. Else: not older than this.
  std::optional<std::string> resource_version;
  /// "NotOlderThan", "Exact", or empty for the server's own rule.
  std::string resource_version_match;
  TimePoint deadline = TimePoint{};
};

struct ListPage {
  std::vector<Decoded> items;
  std::string resource_version;
  std::string continue_token;  // empty on the last page
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  bool bookmarks = true;
  /// The server ends the stream after this long. Zero: its own choice.
  Duration timeout{0};
  /// WatchList: the stream begins with all objects, then a bookmark with k8s.io/initial-events-end.
  bool send_initial_events = false;
};

enum class WatchEventType { added, modified, deleted, bookmark };

struct WatchEvent {
  WatchEventType type = WatchEventType::modified;
  Decoded decoded;
  bool initial_events_end = false;  // a bookmark that ends the initial events
};

/// An open watch. Destroying it closes the connection.
class WatchStream {
 public:
  virtual ~WatchStream() = default;

  /// Waits for events and returns all that are there: never an empty list without an end. An empty list means that
  /// the server ended the stream in good order. Errors: gone (410 as an ERROR event), unreachable (connection lost,
  /// or silent for longer than the idle limit), bad_response (garbage, or a line beyond the size limit), forbidden …
  virtual Awaitable<Result<std::vector<WatchEvent>>> next() = 0;
};

/// One API server. Implemented over HTTP, and straight into a simulated server's store: callers see no difference.
///
/// Executor: call from any one loop; the work happens on the implementation's own, results come back to the caller.
/// Cancellation: terminal, at every call; a cancelled write may or may not have happened.
/// Errors: values, classified once (ErrorKind). Only cancellation and bugs throw.
class Api {
 public:
  virtual ~Api() = default;

  /// Carries out one request. For remove, the answer is the object's last state or a metav1.Status.
  virtual Awaitable<Result<Object>> call(Request request) = 0;
  virtual Awaitable<Result<ListPage>> list(Resource resource, ListOptions options, const Decoder& decoder) = 0;
  virtual Awaitable<Result<std::unique_ptr<WatchStream>>> watch(Resource resource, WatchOptions options,
                                                                const Decoder& decoder) = 0;
  /// GET of a path outside the resources: discovery, /version, /readyz.
  virtual Awaitable<Result<json::value>> get_path(std::string path) = 0;

  /// For logs and metrics: which server this is. Holds no credential.
  [[nodiscard]] virtual std::string_view name() const = 0;

  Awaitable<Result<Object>> get(const Resource& resource, Key key);
  Awaitable<Result<Object>> create(const Resource& resource, json::object object);
  /// Replaces; fails with conflict unless metadata.resourceVersion is the current one (or absent).
  Awaitable<Result<Object>> update(const Resource& resource, json::object object, std::string subresource = {});
  Awaitable<Result<Object>> merge_patch(const Resource& resource, Key key, json::object patch,
                                        std::string subresource = {});
  Awaitable<Result<Object>> json_patch(const Resource& resource, Key key, json::array patch,
                                       std::string subresource = {});
  /// Server-side apply of the fields in `object`.
  Awaitable<Result<Object>> apply(const Resource& resource, json::object object, bool force = false,
                                  std::string subresource = {});
  Awaitable<Result<Object>> remove(const Resource& resource, Key key,
                                   Propagation propagation = Propagation::background);
  /// All pages as one list, from one consistent snapshot; starts over when the snapshot expires between pages.
  Awaitable<Result<std::vector<Object>>> list_all(const Resource& resource, ListOptions options);

  /// True if the server serves that kind. From discovery, which is read once per group and version, and again while the
  /// kind is missing (a CRD may have been installed since).
  Awaitable<Result<bool>> serves(const Resource& resource);
  /// True if RBAC allows it to us (SelfSubjectAccessReview).
  Awaitable<Result<bool>> may(std::string verb, const Resource& resource, Key key, std::string subresource = {});

 private:
  std::map<std::string, std::vector<std::string>> served_;  // by group version: plurals, from discovery
};

}  // namespace hubferry::kube
