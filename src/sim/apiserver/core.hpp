#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/sim/server.hpp"
#include "sim/apiserver/certificate_authority.hpp"
#include "sim/apiserver/kinds.hpp"
#include "sim/apiserver/rbac_authorizer.hpp"
#include "sim/apiserver/store.hpp"

namespace hubferry::sim {

struct Page {
  std::vector<kube::Object> items;
  std::int64_t version = 0;
  std::string continue_token;
  std::int64_t remaining = 0;
};

class Watch;

/// The API server behind its HTTP frontend and its direct API: executes requests, each without suspending, and does
/// background work between them. Its callers add latency, faults and turns of the loop.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Options options, const kube::Env& env, async::Random random);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Outcome<kube::Object> execute(const User& user, kube::Request request);
  Outcome<Page> list(const User& user, const kube::Resource& resource, const kube::ListOptions& options,
                     std::int64_t stale_versions = 0);
  Outcome<std::unique_ptr<Watch>> watch(const User& user, const kube::Resource& resource,
                                        const kube::WatchOptions& options);
  /// Discovery, /version, /readyz.
  Outcome<json::value> path(std::string_view path) const;
  /// The object with its metadata.managedFields.
  json::object with_managed_fields(const Kind& kind, const kube::Object& object) const;

  /// A request whose sender has timed out, but that still arrives, at `when`.
  void deliver_late(async::TimePoint when, const User& user, kube::Request request);
  /// Executes the late requests that have arrived by now. To be called before the store is read from outside.
  void execute_late_requests();

  /// Runs background work in later turns of this loop.
  void run_background_on(const async::Executor& executor);
  void compact() { store_.compact(); }

  /// Nothing if the token is unknown or has expired.
  [[nodiscard]] std::optional<User> authenticate(const std::string& token) const;
  std::string add_token(User user, std::optional<async::WallTime> expires, std::string account_uid);
  CertificateAuthority& authority();

  void record(const User& user, std::string_view verb, const kube::Resource& resource, const std::string& subresource,
              const kube::Key& key, std::string outcome);

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] async::Clock& clock() { return clock_; }
  [[nodiscard]] const obs::Logger& log() const { return log_; }
  [[nodiscard]] const Kinds& kinds() const { return kinds_; }
  [[nodiscard]] Store& store() { return store_; }
  void observe_writes(WriteObserver observer);
  void add_admission(const kube::Resource& resource, Admission admission) {
    admissions_.emplace(resource.display_name(), std::move(admission));
  }
  Faults faults;
  async::Random random;
  bool validation_rules = true;  // oneOf, anyOf, CEL
  std::vector<RequestRecord> requests;

 private:
  // Requests, in the order of their steps (core.cpp, create.cpp, update.cpp).
  [[nodiscard]] Outcome<const Kind*> authorize(const User& user, std::string_view verb, const kube::Resource& resource,
                                               const kube::Key& key, const std::string& subresource) const;
  Outcome<kube::Object> get(const Kind& kind, const kube::Request& request) const;
  Outcome<kube::Object> create(const User& user, const Kind& kind, kube::Request& request);
  Outcome<kube::Object> update(const User& user, const Kind& kind, kube::Request& request);
  Outcome<kube::Object> patch(const User& user, const Kind& kind, kube::Request& request);
  Outcome<kube::Object> apply(const User& user, const Kind& kind, kube::Request& request);
  Outcome<> check_namespace(const Kind& kind, const kube::Key& key) const;
  /// `old` is null for a create.
  Outcome<> check_content(const Kind& kind, std::string_view name, json::object& object, const json::object* old) const;
  Outcome<kube::Object> insert(const User& user, const Kind& kind, kube::Request& request, json::object object,
                               std::unique_ptr<ManagedFields> managed);
  Outcome<kube::Object> replace(const User& user, const Kind& kind, const kube::Request& request, const kube::Key& key,
                                json::object next, std::unique_ptr<ManagedFields> managed, bool applied);
  /// Runs what add_admission() registered.
  Outcome<> check_admission(const User& user, const Kind& kind, const kube::Object* before, const json::object& after);
  [[nodiscard]] std::string manager_of(const kube::Request& request) const;
  [[nodiscard]] std::string timestamp() const;

  // Deletion, finalizers and garbage collection (delete.cpp).
  Outcome<kube::Object> remove(const Kind& kind, const kube::Request& request);
  Outcome<kube::Object> remove_entry(const Kind& kind, const kube::Key& key, kube::Propagation propagation);
  /// Changes an object as the server itself; erases it if it is being deleted and has no finalizer left.
  void rewrite(Collection& collection, const kube::Key& key, const std::function<void(json::object&)>& change);
  kube::Object erase(Collection& collection, const kube::Key& key);
  void collect_garbage(const Store::Reference& reference);
  void delete_dependents(const std::string& uid);
  void advance_foreground(const std::string& uid);
  void advance_orphaning(const Store::Reference& reference, const std::string& uid);
  void empty_namespace(const std::string& name);
  void empty_definition(const std::string& name);

  // Side effects of a write (side_effects.cpp).
  void after_write(const Kind& kind, const kube::Object& object);
  void after_erase(Collection& collection, const kube::Object& object);
  void establish(const std::string& definition);
  void sign(const std::string& request);

  // Kinds that are answered, not stored (access.cpp).
  Outcome<kube::Object> review(const User& user, const Kind& kind, const json::object& body) const;
  Outcome<kube::Object> request_token(const kube::Request& request);

  void later(std::function<void()> task);
  void schedule();
  void run_one_task();
  [[nodiscard]] const Kind& kind_of(const Collection& collection) const;

  Options options_;
  async::Clock& clock_;
  obs::Logger log_;
  Store store_;
  Kinds kinds_;
  RbacAuthorizer authorizer_;
  std::vector<std::shared_ptr<const Kind>> stored_kinds_;  // by collection id; outlive their CRDs
  std::map<std::string, Collection*> collection_of_definition_;
  std::map<std::string, std::string> established_versions_;  // by definition: of the write that established it
  std::set<std::string> terminating_namespaces_;
  std::map<std::size_t, std::string> terminating_definitions_;  // by collection id
  std::map<std::string, Store::Reference> foreground_;          // by uid: waiting for their dependents

  struct Token {
    User user;
    std::optional<async::WallTime> expires;
    std::string account_uid;
  };
  std::unordered_map<std::string, Token> tokens_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::multimap<std::string, Admission> admissions_;  // by plural.group
  const User* writer_ = nullptr;                      // whose request is being executed

  struct LateRequest {
    User user;
    kube::Request request;
  };
  std::multimap<async::TimePoint, LateRequest> late_;
  std::deque<std::function<void()>> tasks_;
  bool scheduled_ = false;
  async::Executor executor_;
};

/// Authenticates a call; nothing: unauthorized. The core outlives it.
using Identify = std::function<std::optional<User>()>;

/// A kube::Api that calls the core directly.
std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, Identify identify);
std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, User user);

/// The client configuration of the server at `url`: URL and CA, without a credential.
kube::ClientConfig describe_server(Core& core, const std::string& url);

/// Adds a credential of `user`: a token that does not expire, or a client certificate.
void add_credential(kube::ClientConfig& config, Core& core, const User& user, bool by_certificate);

}  // namespace hubferry::sim
