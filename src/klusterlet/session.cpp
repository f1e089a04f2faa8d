#include "klusterlet/session.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/enrolment.hpp"
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

constexpr auto longest_check_period = std::chrono::minutes{5};
// However short-lived certificates are, they are not requested in quick succession.
constexpr auto least_session = std::chrono::seconds{10};

}  // namespace

Session::Session(AgentCore& agent, std::shared_ptr<kube::Api> api)
    : agent_(agent),
      api_(std::move(api)),
      cluster_key_{{}, agent.options.cluster_name},
      lease_key_{ocm::lease_key(agent.options.cluster_name)},
      timeout_(agent.connection_timeout(), agent.env.clock.wall_now()) {
  if (agent_.options.record_events) recorder_.emplace(*api_, recorder_options(agent_.options), agent_.env);
  if (agent_.validity) certificate_condition_ = certificate_condition(*agent_.validity);
  if (!agent_.options.probe) availability_.saw(true, agent_.env.clock.now());
}

Awaitable<std::optional<Leave>> Session::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope_ = &scope;
    scope.spawn(watch_cluster());
    scope.spawn(beat());
    scope.spawn(write_status());
    scope.spawn(rotate());
    scope.spawn(watch_connection());
    if (agent_.options.probe) scope.spawn(probe_spoke());
    if (agent_.options.facts != nullptr) scope.spawn(watch_facts());
    if (agent_.store.takes_bootstraps()) scope.spawn(watch_work());
    if (recorder_) scope.spawn(recorder_->run());
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
  ObjectFollower follower{*api_, ocm::managed_clusters, cluster_key_, ocm::managed_cluster_decoder(), agent_.env};
  while (true) {
    auto next = co_await follower.next();
    saw_cluster(std::static_pointer_cast<const ocm::ManagedCluster>(next));
  }
}

void Session::saw_cluster(std::shared_ptr<const ocm::ManagedCluster> cluster) {
  const bool beat_before = is_accepted();
  const auto duration_before = lease_duration();
  cluster_ = std::move(cluster);
  if (is_accepted() != beat_before || (beat_before && lease_duration() != duration_before)) beat_changed_.notify();
  status_changed_.notify();
  check_acceptance();
}

void Session::check_acceptance() {
  // A cluster that was deleted on its hub is not denied: if it does not come back, the timeout ends the session.
  if (cluster_ == nullptr) return;
  const auto acceptance = acceptance_of(*cluster_);
  was_accepted_ = was_accepted_ || acceptance == Acceptance::accepted;
  const bool denied = acceptance == Acceptance::denied || (was_accepted_ && acceptance != Acceptance::accepted);
  if (denied && agent_.multiple_hubs())
    end(Leave{LeaveReason::denied, "the hub denies the cluster: hubAcceptsClient is false"});
}

bool Session::apply_settings() {
  timeout_.set_timeout(agent_.connection_timeout());
  check_acceptance();  // if MultipleHubs was switched on, an earlier denial takes effect now
  if (agent_.bootstrap_changed())
    end(Leave{LeaveReason::bootstrap_changed, "the bootstrap kubeconfig in use was changed"});
  return !ended_;
}

Awaitable<> Session::rotate() {
  auto& env = agent_.env;
  if (!agent_.validity) {
    end(Leave{LeaveReason::certificate_expired, "the certificate cannot be parsed"});
    co_return;
  }
  const auto validity = *agent_.validity;
  const auto expiry = monotonic(env.clock, validity.until);
  const auto first =
      std::max(monotonic(env.clock, first_rotation_check(validity)), async::later(env.clock.now(), least_session));
  co_await env.clock.sleep_until(std::min(first, expiry));
  const auto spread = most_remaining - least_remaining;
  while (env.clock.now() < expiry &&
         !is_due_for_rotation(validity, env.clock.wall_now(), least_remaining + env.random.fraction() * spread)) {
    // Often enough to hit the rotation window, however narrow it is.
    const Duration window = std::chrono::duration_cast<Duration>((validity.until - validity.from) * spread);
    const Duration pause = std::min<Duration>(longest_check_period, window / 4 + std::chrono::seconds{1});
    co_await env.clock.sleep_until(std::min(async::later(env.clock.now(), pause), expiry));
  }
  const bool replaced = co_await async::before_deadline(env.clock, expiry, replace_certificate());
  if (replaced) {
    end(std::nullopt);
  } else {
    end(Leave{LeaveReason::certificate_expired,
              "the certificate expired at " + async::format_time(validity.until) + " and could not be renewed"});
  }
}

Awaitable<> Session::replace_certificate() {
  EnrolmentOptions options;
  options.identity = agent_.identity();
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
  auto enrolled = co_await enrol(*api_, std::move(options), agent_.env);
  HubSecret secret = *agent_.secret;
  secret.certificate = std::move(enrolled.certificate);
  secret.key = std::move(enrolled.key);
  co_await agent_.save_secret(std::move(secret));
}

Awaitable<phase::ReconcileState> stay_joined(AgentContext& context, AgentRecord&, const phase::State&) {
  auto& agent = context.services();
  if (!agent.selected || !agent.secret) co_return phase::go_to(phases::selecting);
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
