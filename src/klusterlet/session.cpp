#include "klusterlet/session.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/client_configs.hpp"
#include "klusterlet/object_follower.hpp"

// The phase Joined, and what its parts share.
namespace hubferry::klusterlet {

namespace {

kube::EventRecorderOptions recorder_options(const AgentOptions& options) {
  kube::EventRecorderOptions recorder;
  recorder.controller = "hubferry.io/klusterlet";
  recorder.instance = options.agent_name;
  // One cluster, few reasons: small limits suffice.
  recorder.most_waiting = 20;
  recorder.most_known = 50;
  return recorder;
}

kube::Condition certificate_condition(const Validity& validity) {
  return {.type = ocm::names::certificate_rotated,
          .status = kube::ConditionStatus::yes,
          .reason = "ClientCertificateUpdated",
          .message = "client certificate is valid from " + async::format_time(validity.from) + " to " +
                     async::format_time(validity.until)};
}

// A watch begins with the object if that exists.
constexpr auto silence_of_missing = std::chrono::seconds{10};
constexpr auto longest_check_period = std::chrono::minutes{5};
// However short-lived certificates are, they are not requested in quick succession.
constexpr auto least_session = std::chrono::seconds{10};

}  // namespace

Session::Session(AgentCore& agent, std::shared_ptr<kube::Api> api)
    : agent_(agent),
      api_(std::move(api)),
      cluster_key_{{}, agent.options.cluster_name},
      lease_key_{ocm::lease_key(agent.options.cluster_name)},
      started_(agent.env.clock.now()),
      timeout_(agent.connection_timeout(), agent.reached) {
  if (agent_.options.record_events) recorder_.emplace(*api_, recorder_options(agent_.options), agent_.env);
  if (agent_.validity) certificate_condition_ = certificate_condition(*agent_.validity);
  if (!agent_.options.probe && agent_.options.has_api_server) availability_.saw(true, agent_.env.clock.now());
}

Awaitable<std::optional<Leave>> Session::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope_ = &scope;
    scope.spawn(watch_cluster());
    scope.spawn(beat());
    scope.spawn(write_status());
    scope.spawn(watch_connection());
    if (agent_.options.probe) scope.spawn(probe_spoke());
    if (agent_.options.facts != nullptr) scope.spawn(watch_facts());
    if (agent_.store.takes_bootstraps()) scope.spawn(watch_work());
    if (recorder_) scope.spawn(recorder_->run());
    if (agent_.unsaved) scope.spawn(agent_.save_unsaved());
    co_return;
  };
  co_await async::with_scope(body);
  co_return std::move(leave_);
}

void Session::end(std::optional<Leave> leave) {
  if (ended_) return;
  ended_ = true;
  leave_ = std::move(leave);
  scope_->stop();
}

void Session::report(kube::EventType type, std::string_view reason, const std::string& message) {
  agent_.env.log.info(message, {{"event", reason}});
  if (!recorder_ || cluster_ == nullptr) return;
  const kube::ObjectReference regarding{.api_version = ocm::managed_clusters.api_version(),
                                        .kind = ocm::managed_clusters.kind,
                                        .ns = agent_.options.cluster_name,
                                        .name = agent_.options.cluster_name,
                                        .uid = std::string{cluster_->uid()},
                                        .resource_version = {}};
  recorder_->event(regarding, type, reason, "Registering", message);
}

Awaitable<> Session::watch_cluster() {
  ObjectFollower follower{*api_, ocm::managed_clusters, cluster_key_, kube::object_decoder(), agent_.env};
  // It was there a moment ago.
  follower.begin_with_watch({.not_older_than = agent_.cluster_version, .longest_silence = silence_of_missing});
  follower.on_state = [this](const kube::Error* error) {
    if (error != nullptr)
      agent_.connection_failed(ConnectionPart::cluster, *error);
    else if (cluster_ != nullptr)
      agent_.connection_works(ConnectionPart::cluster);
  };
  while (true) {
    auto next = co_await follower.next();
    latest_ = std::static_pointer_cast<const kube::Object>(next);
    if (latest_ == nullptr) {
      saw_cluster(nullptr);
      continue;
    }
    auto decoded = ocm::managed_cluster_decoder().from_object(*latest_);
    if (decoded) saw_cluster(std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object));
  }
}

void Session::saw_cluster(std::shared_ptr<const ocm::ManagedCluster> cluster) {
  const bool beat_before = is_accepted();
  const auto period_before = period();
  const bool was_available = cluster_ != nullptr && cluster_->is_true(ocm::names::available);
  cluster_ = std::move(cluster);
  // The hub has reverted what we reported, since it misses heartbeats: it would again.
  if (was_available && cluster_ != nullptr && !cluster_->is_true(ocm::names::available) &&
      reported_availability_ == true)
    beats_when_reported_ = beats_;
  if (is_accepted() != beat_before || (beat_before && period() != period_before)) beat_changed_.notify();
  status_changed_.notify();
  if (cluster_ != nullptr) cluster_seen_.set();
  if (cluster_ == nullptr)
    agent_.connection_failed(ConnectionPart::cluster, "ManagedClusterMissing",
                             "the hub " + agent_.selected->config.server + " has no ManagedCluster " +
                                 cluster_key_.name + ": it was deleted, or the hub was restored without it");
  else
    agent_.connection_works(ConnectionPart::cluster);
  check_acceptance();
}

void Session::check_acceptance() {
  // A cluster that was deleted on its hub is not denied: if it does not come back, the timeout ends the session.
  if (cluster_ == nullptr) return;
  const auto acceptance = acceptance_of(*cluster_);
  if (acceptance == Acceptance::accepted) accepted_uid_ = cluster_->uid();
  // One that was created anew has not been accepted yet, which is no denial.
  const bool revoked = acceptance != Acceptance::accepted && accepted_uid_ == cluster_->uid();
  const bool denied = acceptance == Acceptance::denied || revoked;
  if (denied && agent_.multiple_hubs())
    end(Leave{LeaveReason::denied, "the hub denies the cluster: hubAcceptsClient is false"});
}

bool Session::apply_settings() {
  timeout_.set_timeout(agent_.connection_timeout());
  if (period_in_use_ > Duration{0} && period() != period_in_use_) beat_changed_.notify();
  check_acceptance();  // if MultipleHubs was switched on, an earlier denial takes effect now
  switch (agent_.follow_bootstraps()) {
    case BootstrapChange::none:
      break;
    case BootstrapChange::reconnect: {
      agent_.env.log.info("certificate authority of the hub changed, reconnecting");
      auto secret = *agent_.secret;
      secret.kubeconfig = hub_kubeconfig(agent_.selected->config);
      agent_.unsaved = true;
      agent_.set_secret(std::move(secret));
      give_grace();
      end(std::nullopt);
      break;
    }
    case BootstrapChange::gone:
      end(Leave{LeaveReason::bootstrap_changed, "the bootstrap kubeconfig in use was changed"});
  }
  if (ended_) return false;
  if (lost_secret()) renew_.notify();
  if (auto servers = agent_.external_servers(); servers != external_servers_) {
    external_servers_ = std::move(servers);
    scope_->spawn(put_client_configs());
  }
  return true;
}

/// Adds the external URLs of our own API server to the ManagedCluster.
Awaitable<> Session::put_client_configs() {
  async::Backoff backoff{{}, agent_.env.clock, agent_.env.random};
  const auto servers = external_servers_;
  const kube::Mutation mutate = [&servers](kube::json::object& cluster) {
    return add_client_configs(cluster, servers);
  };
  while (servers == external_servers_) {
    auto edited = co_await kube::edit(*api_, ocm::managed_clusters, cluster_key_, mutate);
    if (edited) co_return;
    agent_.env.log.warn("adding the external server URLs to the ManagedCluster failed, retrying",
                        {{"error", edited.error().describe()}});
    co_await backoff.pause();
  }
}

TimePoint Session::earliest_rotation() const {
  return async::later(started_, least_session);
}

TimePoint Session::rotation_start() const {
  if (!agent_.validity) return started_;
  // All on the monotonic clock: a step of the wall clock neither expires a certificate nor keeps it alive.
  const auto expiry = agent_.certificate_until;
  const auto first = expiry - (agent_.validity->until - first_rotation_check(*agent_.validity));
  return std::min(std::max(first, earliest_rotation()), expiry);
}

Awaitable<> Session::rotate(bool wanted) {
  auto& env = agent_.env;
  if (!agent_.validity) {
    end(Leave{LeaveReason::certificate_expired, "the certificate cannot be parsed"});
    co_return;
  }
  const auto validity = *agent_.validity;
  const auto expiry = agent_.certificate_until;
  const auto age = [&] { return validity.until - (expiry - env.clock.now()); };
  const auto spread = most_remaining - least_remaining;
  while (!wanted && env.clock.now() < expiry &&
         !is_due_for_rotation(validity, age(), least_remaining + env.random.fraction() * spread)) {
    // Often enough to hit the rotation window, however narrow it is.
    const Duration window = std::chrono::duration_cast<Duration>((validity.until - validity.from) * spread);
    const Duration pause = std::min<Duration>(longest_check_period, window / 4 + std::chrono::seconds{1});
    const auto until = std::min(async::later(env.clock.now(), pause), expiry);
    wanted = co_await async::before_deadline(env.clock, until, renew_.wait());
  }
  if (wanted) {
    env.log.info("stored hub kubeconfig was deleted, requesting a new certificate");
    co_await env.clock.sleep_until(std::min(earliest_rotation(), expiry));
  }
  auto enrolled = co_await async::before_deadline(env.clock, expiry, request_certificate());
  if (enrolled) {
    // The next session saves it: this one still has connections with the old certificate, and a store may be slow.
    HubSecret secret = *agent_.secret;
    secret.certificate = std::move(enrolled->certificate);
    secret.key = std::move(enrolled->key);
    agent_.use_secret(std::move(secret));
    end(std::nullopt);
  } else {
    agent_.rejected_certificate = agent_.secret->certificate;
    end(Leave{LeaveReason::certificate_expired,
              "the certificate expired at " + async::format_time(validity.until) + " and could not be renewed"});
  }
}

Awaitable<Enrolled> Session::request_certificate() {
  EnrolmentOptions options;
  options.identity = agent_.identity();
  options.keys = &agent_.keys();
  options.lifetime = agent_.certificate_lifetime();
  options.report = [this](std::string_view reason, const std::string& message) {
    const bool bad = reason != "CSRCreated";
    report(bad ? kube::EventType::warning : kube::EventType::normal, reason, message);
    if (!bad) return;
    certificate_condition_ = kube::Condition{.type = ocm::names::certificate_rotated,
                                             .status = kube::ConditionStatus::no,
                                             .reason = std::string{reason},
                                             .message = message};
    status_changed_.notify();
  };
  options.failed = [this](const std::string& what, const kube::Error& error) {
    agent_.env.log.warn("renewing the certificate failed, retrying", {{"what", what}, {"error", error.describe()}});
  };
  co_return co_await enrol(*api_, std::move(options), agent_.env);
}

Awaitable<phase::ReconcileState> stay_joined(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  if (!agent.selected || !agent.secret) co_return phase::go_to(phases::selecting);
  agent.stored.reset();
  agent.was_joined = true;
  agent.reached = agent.env.clock.now();
  context.log().info("joined hub", {{"event", "HubClientConfigReady"}, {"server", agent.selected->config.server}});
  while (true) {
    // A certificate is only sent to the hub that issued it: Selecting compared them, or Bootstrapping got it there.
    Session session{agent, agent.connect(client_config(*agent.secret, agent.selected->config))};
    auto leave = co_await session.run();
    if (!leave) continue;
    agent.leave = std::move(leave);
    co_return phase::done();
  }
}

}  // namespace hubferry::klusterlet
