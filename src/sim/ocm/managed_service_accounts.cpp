#include "hubferry/sim/managed_service_accounts.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

namespace {

namespace json = kube::json;
namespace resources = kube::resources;
using kube::Awaitable;
using kube::Key;
using kube::Object;
using Done = kube::Result<>;
using ObjectCache = kube::Cache<Object>;

constexpr const char* managed_label = "authentication.open-cluster-management.io/is-managed-serviceaccount";
constexpr const char* expiry_annotation = "authentication.open-cluster-management.io/token-expires";
constexpr std::chrono::hours default_validity{8640};
// A real server rejects shorter ones.
constexpr std::chrono::minutes least_validity{10};

async::Duration validity_of(const Object& account) {
  async::Duration validity = default_validity;
  try {
    if (const auto text = account.string_at({"spec", "rotation", "validity"}); !text.empty())
      validity = async::parse_duration(text);
  } catch (const std::invalid_argument&) {
    return default_validity;
  }
  return std::max<async::Duration>(validity, least_validity);
}

struct Token {
  std::string text;
  async::WallTime expires;
};

}  // namespace

class ManagedServiceAccounts::State {
 public:
  State(kube::Api& global, std::map<std::string, Hub> hubs, kube::Env env)
      : global_(global),
        hubs_(std::move(hubs)),
        env_(std::move(env)),
        accounts_(global_, ocm::managed_service_accounts, {}, kube::object_decoder(), env_),
        secrets_(global_, resources::secrets, labelled({}), kube::object_decoder(), env_),
        queue_(queue_options(), env_) {
    const auto add = [this](const Key& key, const auto&, const auto&) {
      if (hubs_.contains(key.ns)) queue_.add(key);
    };
    subscriptions_.push_back(accounts_.subscribe(add));
    subscriptions_.push_back(secrets_.subscribe(add));
    for (const auto& [name, hub] : hubs_) {
      auto& cache = remote_
                        .try_emplace(name, *hub.api, resources::service_accounts, labelled(ocm::names::addon_namespace),
                                     kube::object_decoder(), env_)
                        .first->second;
      subscriptions_.push_back(cache.subscribe(
          [this, name = name](const Key& key, const auto&, const auto&) { queue_.add({name, key.name}); }));
    }
  }

  Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(accounts_.run());
      scope.spawn(secrets_.run());
      for (auto& [name, cache] : remote_) scope.spawn(cache.run());
      scope.spawn(queue_.run());
      co_await accounts_.wait_synced();
      co_await secrets_.wait_synced();
      for (int worker = 0; worker < 4; ++worker) scope.spawn(work());
    };
    co_await async::with_scope(body);
  }

 private:
  static kube::CacheOptions labelled(std::string ns) {
    kube::CacheOptions options;
    options.ns = std::move(ns);
    options.label_selector = std::string{managed_label} + "=true";
    return options;
  }

  static kube::WorkQueueOptions queue_options() {
    kube::WorkQueueOptions options;
    options.name = "managed-service-accounts";
    options.most_delay = std::chrono::seconds{10};
    return options;
  }

  Awaitable<> work() {
    while (auto key = co_await queue_.get()) {
      auto done = co_await reconcile(*key);
      if (done) {
        queue_.forget(*key);
      } else {
        env_.log.debug("reconcile failed, retrying",
                       {{"managedserviceaccount", kube::to_string(*key)}, {"error", done.error().describe()}});
        queue_.add_rate_limited(*key);
      }
      queue_.done(*key);
    }
  }

  Awaitable<Done> reconcile(Key key) {
    const auto account = accounts_.get(key);
    auto& hub = *hubs_.at(key.ns).api;
    const Key remote{ocm::names::addon_namespace, key.name};
    if (account == nullptr || account->is_being_deleted()) {
      // Only our own: there may be a foreign account of that name.
      if (remote_.at(key.ns).get(remote) == nullptr) co_return Done{};
      auto gone = co_await ensure_gone(hub, resources::service_accounts, remote);
      co_return gone;
    }
    json::object wanted{{"metadata", json::object{{"name", remote.name},
                                                  {"namespace", remote.ns},
                                                  {"labels", json::object{{managed_label, "true"}}}}}};
    auto made = co_await ensure(hub, resources::service_accounts, std::move(wanted));
    if (!made) co_return made.error();
    const bool is_new = made->outcome == kube::WriteOutcome::created;
    const auto secret = secrets_.get(key);
    const auto now = env_.clock.wall_now();
    if (const auto due = renewal_time(secret.get(), validity_of(*account)); due && !is_new && now < *due) {
      queue_.add_after(key, *due - now);
      co_return Done{};
    }
    auto written = co_await renew(*account, remote);
    co_return written;
  }

  /// When the token of that Secret must be renewed; nothing if there is none.
  static std::optional<async::WallTime> renewal_time(const Object* secret, async::Duration validity) {
    if (secret == nullptr || secret->string_at({"data", "token"}).empty()) return std::nullopt;
    try {
      return async::parse_time(secret->annotation(expiry_annotation)) - validity / 5;
    } catch (const std::invalid_argument&) {
      return std::nullopt;
    }
  }

  Awaitable<Done> renew(Object account, Key remote) {
    const Key key = account.key();
    auto token = co_await request_token(*hubs_.at(key.ns).api, remote, validity_of(account));
    if (!token) co_return token.error();
    auto ca = co_await ca_of(hubs_.at(key.ns));
    if (!ca) co_return ca.error();
    json::object wanted{
        {"type", "Opaque"},
        {"metadata",
         json::object{{"name", key.name},
                      {"namespace", key.ns},
                      {"labels", json::object{{managed_label, "true"}}},
                      {"annotations", json::object{{expiry_annotation, async::format_time(token->expires)}}}}},
        {"data", json::object{{"token", kube::encode_base64(token->text)}, {"ca.crt", kube::encode_base64(*ca)}}}};
    if (auto owned = kube::set_owner(wanted, ocm::managed_service_accounts, account); !owned) co_return owned.error();
    auto written = co_await ensure(global_, resources::secrets, std::move(wanted));
    if (!written) co_return written.error();
    co_await see(key, std::string{written->object.resource_version()});
    auto reported = co_await report(account, *token);
    co_return reported;
  }

  /// Waits until the cache has seen our own write: an older state would renew the token again.
  Awaitable<> see(Key key, std::string version) {
    const auto deadline = async::later(env_.clock.now(), std::chrono::seconds{10});
    auto seen = secrets_.wait_until_seen(std::move(key), std::move(version), async::never);
    co_await async::before_deadline(env_.clock, deadline, std::move(seen));
  }

  static Awaitable<kube::Result<Token>> request_token(kube::Api& hub, Key account, async::Duration validity) {
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = resources::service_accounts;
    request.key = std::move(account);
    request.subresource = "token";
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(validity).count();
    request.body = json::object{{"apiVersion", "authentication.k8s.io/v1"},
                                {"kind", "TokenRequest"},
                                {"spec", json::object{{"expirationSeconds", seconds}}}};
    auto answer = co_await hub.call(std::move(request));
    if (!answer) co_return answer.error();
    Token token{std::string{answer->string_at({"status", "token"})},
                async::parse_time(answer->string_at({"status", "expirationTimestamp"}))};
    co_return token;
  }

  static Awaitable<kube::Result<std::string>> ca_of(Hub hub) {
    if (!hub.ca_pem.empty()) co_return hub.ca_pem;
    const Key key{ocm::names::addon_namespace, "kube-root-ca.crt"};
    auto found = co_await hub.api->get(resources::config_maps, key);
    if (found) co_return std::string{found->string_at({"data", "ca.crt"})};
    // A hub on plain HTTP has none.
    if (found.error().kind == kube::ErrorKind::not_found) co_return std::string{};
    co_return found.error();
  }

  Awaitable<Done> report(Object account, Token token) {
    const auto now = env_.clock.wall_now();
    kube::Mutation mutate = [now, name = std::string{account.name()}, expires = token.expires](json::object& object) {
      auto& fields = kube::object_in(object, "status");
      fields["expirationTimestamp"] = async::format_time(expires);
      fields["tokenSecretRef"] = json::object{{"name", name}, {"lastRefreshTimestamp", async::format_time(now)}};
      kube::set_condition(fields, {"SecretCreated", kube::ConditionStatus::yes, "SecretCreated", {}, 0}, now);
      kube::set_condition(fields, {"TokenReported", kube::ConditionStatus::yes, "TokenReported", {}, 0}, now);
      return true;
    };
    kube::EditOptions how;
    how.subresource = "status";
    auto written = co_await kube::edit(global_, ocm::managed_service_accounts, account.key(), std::move(mutate), how);
    if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
    co_return Done{};
  }

  kube::Api& global_;
  std::map<std::string, Hub> hubs_;
  kube::Env env_;
  ObjectCache accounts_;
  ObjectCache secrets_;
  std::map<std::string, ObjectCache> remote_;  // the ServiceAccounts of each hub
  kube::WorkQueue queue_;
  std::vector<kube::CacheSubscription> subscriptions_;
};

ManagedServiceAccounts::ManagedServiceAccounts(kube::Api& global, std::map<std::string, Hub> hubs, kube::Env env)
    : state_(std::make_unique<State>(global, std::move(hubs), std::move(env))) {}

ManagedServiceAccounts::~ManagedServiceAccounts() = default;

kube::Awaitable<> ManagedServiceAccounts::run() {
  return state_->run();
}

}  // namespace hubferry::sim
