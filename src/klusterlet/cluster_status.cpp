#include <boost/json/object.hpp>

#include "hubferry/klusterlet/cluster_facts.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/hub_pause.hpp"
#include "klusterlet/session.hpp"

// What the agent reports in the ManagedCluster's status.
namespace hubferry::klusterlet {

namespace {

using kube::json::object;

kube::Condition joined_condition() {
  return {.type = ocm::names::joined,
          .status = kube::ConditionStatus::yes,
          .reason = "ManagedClusterJoined",
          .message = "Managed cluster joined"};
}

kube::Condition available_condition(bool available, const std::string& message) {
  if (available)
    return {.type = ocm::names::available,
            .status = kube::ConditionStatus::yes,
            .reason = "ManagedClusterAvailable",
            .message = "Managed cluster is available"};
  return {.type = ocm::names::available,
          .status = kube::ConditionStatus::no,
          .reason = "ManagedClusterKubeAPIServerUnavailable",
          .message = "The kube-apiserver is not ok: " + message};
}

/// True if the condition on the object differs from ours.
bool differs(const ocm::ManagedCluster& cluster, const kube::Condition& wanted) {
  const auto known = cluster.condition(wanted.type);
  const auto status =
      wanted.status == kube::ConditionStatus::yes ? ocm::ConditionStatus::is_true : ocm::ConditionStatus::is_false;
  return !known || known->status != status || known->reason != wanted.reason;
}

bool is_clock_off(const ocm::ManagedCluster& cluster) {
  const auto synced = cluster.condition(ocm::names::clock_synced);
  return synced && synced->status == ocm::ConditionStatus::is_false;
}

bool put_version(object& status, const std::string& version) {
  if (version.empty() || kube::string_at(status, {"version", "kubernetes"}) == version) return false;
  auto& field = status["version"];
  if (!field.is_object()) field = object{};
  field.get_object()["kubernetes"] = version;
  return true;
}

}  // namespace

Awaitable<> Session::probe_spoke() {
  auto& clock = agent_.env.clock;
  while (true) {
    auto health = co_await agent_.options.probe();
    const auto before = availability_.available();
    const bool new_version = health.healthy && health.kubernetes_version != health_.kubernetes_version;
    availability_.saw(health.healthy, clock.now());
    health_ = std::move(health);
    if (availability_.available() != before || new_version) status_changed_.notify();
    const Duration pause = availability_.failing() ? AvailabilityRule::retry : agent_.options.healthcheck_period;
    co_await clock.sleep_for(pause);
  }
}

Awaitable<> Session::watch_facts() {
  auto& facts = *agent_.options.facts;
  while (true) {
    const auto seen = facts.version();
    co_await facts.wait_for_change(seen);
    status_changed_.notify();
  }
}

/// A cluster whose heartbeats do not arrive is not available: the hub would revert the condition, and both would write
/// without end. So Available is reported only after a heartbeat has succeeded, and if the hub reverted it meanwhile,
/// again only after a further one.
std::optional<bool> Session::availability_to_report() const {
  const auto available = availability_.available();
  if (!available || !*available) return available;
  const auto needed = reported_availability_ == available ? beats_when_reported_ : 0;
  return beats_ > needed ? available : std::nullopt;
}

bool Session::is_status_due() const {
  // If the hub finds our clock out of sync it gets no status from us: its timestamps would be misleading.
  if (!is_accepted() || is_clock_off(*cluster_)) return false;
  // The first heartbeat is under way, and decides whether the cluster is available: one write for all of it.
  if (!tried_to_beat_) return false;
  if (certificate_condition_ || differs(*cluster_, joined_condition())) return true;
  if (agent_.options.facts != nullptr && agent_.options.facts->version() != written_facts_) return true;
  const auto available = availability_to_report();
  if (available && differs(*cluster_, available_condition(*available, {}))) return true;
  return health_.healthy && !health_.kubernetes_version.empty() && health_.kubernetes_version != written_version_;
}

bool Session::put_status(object& cluster) const {
  auto& field = cluster["status"];
  if (!field.is_object()) field = object{};
  auto& status = field.get_object();
  const auto now = agent_.env.clock.wall_now();
  bool changed = kube::set_condition(status, joined_condition(), now);
  if (const auto available = availability_to_report())
    changed = kube::set_condition(status, available_condition(*available, health_.message), now) || changed;
  if (certificate_condition_) changed = kube::set_condition(status, *certificate_condition_, now) || changed;
  if (agent_.options.facts != nullptr) changed = agent_.options.facts->facts().put_into(status) || changed;
  return put_version(status, health_.kubernetes_version) || changed;
}

Awaitable<> Session::write_status() {
  auto& env = agent_.env;
  async::Backoff backoff{{}, env.clock, env.random};
  while (true) {
    if (!is_status_due()) {
      // Without an API server to probe, heartbeats are all that can be said.
      const bool unprobed = !agent_.options.probe && !agent_.options.has_api_server && beats_ > 0;
      if (is_accepted() && (unprobed || cluster_->is_true(ocm::names::available))) agent_.became_available();
      if (tried_to_beat_) latest_.reset();
      agent_.connection_works(ConnectionPart::status);
      co_await status_changed_.wait();
      continue;
    }
    const auto certificate = certificate_condition_;
    const auto version = health_.kubernetes_version;
    const auto facts = agent_.options.facts == nullptr ? 0 : agent_.options.facts->version();
    const auto available = availability_to_report();
    const kube::Mutation mutate = [this](object& cluster) { return put_status(cluster); };
    kube::EditOptions options;
    options.subresource = "status";
    // A first status is written to what the watch has just brought; later ones are rare.
    const auto known = std::exchange(latest_, nullptr);
    auto edit = known != nullptr ? kube::edit(*api_, ocm::managed_clusters, *known, mutate, options)
                                 : kube::edit(*api_, ocm::managed_clusters, cluster_key_, mutate, options);
    auto written = co_await std::move(edit);
    if (!written) {
      // Until the hub has it, it shows the cluster as it was before: a heartbeat alone is not enough.
      agent_.connection_failed(ConnectionPart::status, written.error());
      env.log.info("writing the cluster status failed, retrying", {{"error", written.error().describe()}});
      co_await env.clock.sleep_for(pause_after(written.error(), backoff, env.random));
      continue;
    }
    agent_.connection_works(ConnectionPart::status);
    if (certificate_condition_ && certificate && certificate_condition_->message == certificate->message)
      certificate_condition_.reset();
    written_version_ = version;
    written_facts_ = facts;
    if (available) {
      reported_availability_ = available;
      beats_when_reported_ = beats_;
    }
    // Do not wait for the watch to deliver our own write: it would be written twice.
    auto decoded = ocm::managed_cluster_decoder().from_object(*written);
    if (decoded) saw_cluster(std::static_pointer_cast<const ocm::ManagedCluster>(decoded->object));
  }
}

}  // namespace hubferry::klusterlet
