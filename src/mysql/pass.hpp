#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mysql/candidate.hpp"
#include "mysql/children.hpp"
#include "mysql/cluster.hpp"
#include "mysql/cron.hpp"
#include "mysql/server.hpp"

namespace hubferry::mysql {

/// How long all replicas are waited for: one that does not answer may alone have an acknowledged transaction.
inline constexpr Duration replicas_timeout = std::chrono::minutes{2};

/// One server of the cluster as this pass sees it: its pod, and what the prober says.
struct ServerView {
  std::string name;
  std::size_t ordinal = 0;
  bool exists = false;
  std::string uid;
  std::string address;
  bool ready = false;
  bool is_being_deleted = false;
  std::string revision;
  std::string waiting;  // why a container does not start, such as ErrImagePull
  Health health;
};

/// A server with an open session.
struct Reached {
  const ServerView* server = nullptr;
  std::optional<Session> session;
  Facts facts;
};

/// What came of looking for a new primary.
struct Choice {
  std::string pod;  // empty: none
  GtidPosition received;
  std::string started;  // see Facts
  std::string missing;  // servers that may have what the others lack, and could not be asked
  std::string without;  // servers that were given up, and would have been waited for
};

/// An old primary that accepts no writes any more.
struct Fenced {
  std::optional<std::string> position;  // its last transaction, if it answers
  bool has_run = false;                 // it answers, and has not been restarted since it was seen writable
};

/// Keys of a Secret, and their values.
using SecretData = std::vector<std::pair<std::string, obs::Secret>>;

/// One pass of the reconcile loop over one cluster. It compares the spec with what is there, and never concludes from
/// what happened before: it may be repeated at any time. Errors: PassError.
class Pass {
 public:
  Pass(ClusterContext& context, Cluster& cluster);

  Awaitable<ReconcileState> run();

 private:
  // pass.cpp: the order of the steps, and the status.
  Awaitable<ReconcileState> steps();
  Awaitable<> attempt(Awaitable<> step, std::optional<PassError>& problem);
  Awaitable<> remove_annotation(const char* annotation);
  [[nodiscard]] ServerView view_of(std::size_t ordinal) const;
  void observe();
  void report();
  void report_backups();
  [[nodiscard]] ReconcileState next_phase();
  [[nodiscard]] bool all_ready() const;
  [[nodiscard]] bool all_replicating() const;
  void set(const char* condition, ConditionStatus status, const char* reason, std::string_view message);
  void warn(std::string_view reason, std::string_view note);

  // pass_spec.cpp: the spec as far as it is valid, and servers that were given up.
  Awaitable<> check_spec();
  void keep_in_force(const SpecProblem& problem);
  Awaitable<> check_restore_claim();
  void report_spec();
  Awaitable<> read_give_up();
  Awaitable<> forget_given_up();
  [[nodiscard]] bool is_given_up(const std::string& pod) const;

  // pass_secrets.cpp: the passwords, and how that of root is changed.
  Awaitable<> ensure_secrets();
  Awaitable<> ensure_root_secret();
  Awaitable<std::optional<obs::Secret>> read_password(std::string secret);
  Awaitable<bool> is_accepted(obs::Secret password);
  [[nodiscard]] std::string root_secret_in_use() const;
  Awaitable<> change_root_password(kube::Object secret, obs::Secret wanted);
  Awaitable<kube::Object> write_root_secret(kube::Object secret, SecretData wanted, std::string position);
  Awaitable<bool> has_claims();
  Awaitable<std::string> find_servers_to_change(std::vector<ServerView>& servers, bool is_new);
  Awaitable<std::string> reason_not_to_write(const Reached& primary, const std::vector<ServerView>& servers);
  Awaitable<std::string> set_root_password(const std::vector<ServerView>& servers, obs::Secret password,
                                           kube::Object& secret, const SecretData& both);

  // pass_objects.cpp: Services, StatefulSet, endpoints.
  Awaitable<kube::Object> ensure(const kube::Resource& kind, json::object wanted, const ObjectCache* cache);
  Awaitable<> ensure_services();
  /// Reads it into set_, if it is there and ours, and how many servers there are into set_replicas_.
  Awaitable<> find_stateful_set();
  [[nodiscard]] ObjectCache::Pointer any_pod() const;
  [[nodiscard]] std::size_t count_without_set() const;
  Awaitable<std::size_t> replicas_for_now();
  Awaitable<> ensure_stateful_set();
  Awaitable<> grow_storage(const kube::Object& set);
  Awaitable<> ensure_endpoints(const std::string& service, std::vector<const ServerView*> servers);
  Awaitable<> ensure_all_endpoints();

  // pass_backups.cpp
  Awaitable<> schedule_backups();
  void report_overdue(const CronSchedule& schedule);

  // pass_rolling.cpp: scale, upgrade, restarts.
  Awaitable<std::optional<ReconcileState>> restart_outdated();
  Awaitable<std::optional<ReconcileState>> prepare_scale_down();
  Awaitable<> remove_claims();
  [[nodiscard]] bool may_switch_over() const;
  Awaitable<bool> may_scale_down();
  [[nodiscard]] bool is_primary_well(const ServerView& primary) const;
  [[nodiscard]] bool is_open(const Reached& primary) const;
  [[nodiscard]] bool is_set_current() const;
  [[nodiscard]] bool is_outdated(const ServerView& server) const;

  // pass_topology.cpp: which server is the primary, and the others as its replicas.
  Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> connect(const ServerView& server,
                                                                   sql::Credentials credentials);
  Awaitable<sql::Result<Session>> open(const ServerView& server);
  Awaitable<sql::Result<Reached>> reach(const ServerView& server);
  Awaitable<> ask(const ServerView* server, std::optional<Reached>& answer);
  Awaitable<std::vector<Reached>> reach_all(std::vector<const ServerView*> servers);
  Awaitable<ReconcileState> elect();
  Awaitable<> maintain();
  Awaitable<> record_absent(Reached& primary, const std::vector<const ServerView*>& suspects,
                            const std::vector<Reached>& reached);
  Awaitable<bool> maintain_primary(const ServerView& primary);
  Awaitable<> maintain_semi_sync(const ServerView& primary);
  Awaitable<> join(Reached& server, const Facts& primary);
  [[nodiscard]] bool needs_attention(const ServerView& server) const;
  [[nodiscard]] static bool follows(const Facts& replica, const std::string& address);
  [[nodiscard]] SemiSync semi_sync() const;
  [[nodiscard]] const ServerView* find(const std::string& pod) const;
  [[nodiscard]] std::vector<const ServerView*> others(const std::string& pod) const;

  // pass_volumes.cpp
  Awaitable<> check_volumes();
  void report_volumes();

  // pass_failover.cpp
  Awaitable<std::optional<ReconcileState>> replication();
  Awaitable<bool> wants_failover();
  [[nodiscard]] FailoverRecord planned_switchover() const;
  ReconcileState begin(FailoverRecord record);
  Awaitable<ReconcileState> proceed(FailoverRecord record);
  Awaitable<bool> fence(const FailoverRecord& record, Fenced& fenced);
  ReconcileState keep_old_primary(const FailoverRecord& record);
  Awaitable<ReconcileState> abort(FailoverRecord record, std::string why);
  ReconcileState wait_in_failover(const FailoverRecord& record, const std::string& why);

  // pass_promotion.cpp
  Awaitable<ReconcileState> promote(FailoverRecord record);
  Awaitable<std::optional<ReconcileState>> check_chosen(FailoverRecord& record, const Reached& chosen);
  ReconcileState choose_again(FailoverRecord record);

  // pass_choice.cpp: which replica becomes the primary.
  Awaitable<Choice> choose(const FailoverRecord& record, const Fenced& fenced);
  Awaitable<> stop_receiving(std::vector<Reached>& replicas, std::set<const ServerView*>& silent);
  Awaitable<bool> has_chosen_lost(const FailoverRecord& record, const Reached& chosen,
                                  std::vector<std::string>& missing);
  Awaitable<bool> is_old_primary_back(const FailoverRecord& record);
  Awaitable<bool> may_open_new(const Reached& primary);
  [[nodiscard]] static bool is_behind(const Reached& primary, const std::vector<Reached>& replicas);
  [[nodiscard]] std::string reason_to_wait(const std::vector<Reached>& reached, const Reached& primary) const;
  [[nodiscard]] bool has_run_since_writable(const Reached& server) const;
  [[nodiscard]] bool has_at_most(const ServerView& absent, const GtidPosition& position,
                                 const ServerView* primary) const;

  ClusterContext& context_;
  Cluster& cluster_;
  Services& services_;
  ClusterSpec spec_;     // what is in force
  std::string refused_;  // what of the spec is not, and why
  std::string pending_;  // what of it is under way, and waits for something
  std::vector<std::string> given_up_;
  Owner owner_;
  std::string phase_;
  std::string root_secret_;
  obs::Secret root_password_;
  std::optional<obs::Secret> other_password_;  // while it is changed: some servers may have this one
  obs::Secret replication_password_;
  obs::Secret exporter_password_;
  std::optional<kube::Object> set_;  // the StatefulSet; nothing: it is missing, or not ours
  std::size_t set_replicas_ = 0;
  std::vector<ServerView> servers_;
  std::map<std::string, std::string> unhealthy_;  // pod -> why it does not replicate
  bool may_heal_ = false;                         // the primary is read-only, and nobody has what it lacks
  bool errant_ = false;
  bool lacks_restore_claim_ = false;
  bool password_denied_ = false;
};

}  // namespace hubferry::mysql
