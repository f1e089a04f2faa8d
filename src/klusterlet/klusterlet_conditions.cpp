#include "hubferry/async/backoff.hpp"
#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/klusterlet_objects.hpp"

// The status of a Klusterlet.
namespace hubferry::klusterlet {

using namespace objects;

void KlusterletStore::report(const AgentReport& report) {
  report_ = report;
  status_changed_.notify();
}

namespace {

kube::Condition connection_condition(const AgentReport& report, std::int64_t observed) {
  kube::Condition condition{.type = "HubConnectionDegraded",
                            .status = kube::ConditionStatus::yes,
                            .reason = "HubKubeConfigMissing",
                            .message = "agent phase: " + report.phase,
                            .observed_generation = observed};
  if (report.phase == "Joined" && report.connection_problem.empty()) {
    condition.status = kube::ConditionStatus::no;
    condition.reason = "HubConnectionFunctional";
    condition.message = "agent joined hub " + report.hub;
  } else if (report.phase == "Joined") {
    condition.reason = report.connection_reason;
    condition.message = report.connection_problem;
  } else if (!report.problem.empty()) {
    condition.reason = report.phase == "Bootstrapping" ? "RegistrationFailed" : "BootstrapSecretError";
    condition.message = report.problem;
  }
  return condition;
}

}  // namespace

bool KlusterletStore::put_conditions(object& klusterlet) const {
  auto& status = child(klusterlet, "status");
  const auto now = env_.clock.wall_now();
  const auto* generation = kube::find(klusterlet, {"metadata", "generation"});
  const auto observed = generation != nullptr && generation->is_int64() ? generation->get_int64() : 0;
  kube::Condition applied{.type = "Applied",
                          .status = kube::ConditionStatus::no,
                          .reason = "KlusterletApplied",
                          .message = "the agent uses this Klusterlet",
                          .observed_generation = observed};
  const auto named = cluster_name();
  if (!latest_settings_.problem.empty()) {
    applied.reason = latest_settings_.problem_reason;
    applied.message = latest_settings_.problem;
  } else if (!unreadable_.empty()) {
    applied.reason = "BootstrapSecretUnreadable";
    applied.message = unreadable_ + "; what was valid last stays in effect";
  } else if (!options_.cluster_name.empty() && !named.empty() && named != options_.cluster_name) {
    applied.reason = "ClusterNameConflict";
    applied.message = "clusterName is " + named + ", but the agent was started for cluster " + options_.cluster_name;
  } else if (!report_.store_problem.empty()) {
    applied.reason = "CredentialNotSaved";
    applied.message = "the hub kubeconfig could not be saved: " + report_.store_problem;
  } else {
    applied.status = kube::ConditionStatus::yes;
  }
  const auto connection = connection_condition(report_, observed);
  bool changed = kube::set_condition(status, applied, now);
  if (!report_.phase.empty()) changed = kube::set_condition(status, connection, now) || changed;
  return changed;
}

Awaitable<> KlusterletStore::write_status() {
  async::Backoff backoff{{}, env_.clock, env_.random};
  kube::EditOptions options;
  options.subresource = "status";
  const kube::Key key{{}, options_.klusterlet};
  const kube::Mutation mutate = [this](object& klusterlet) { return put_conditions(klusterlet); };
  while (true) {
    co_await status_changed_.wait();
    auto written = co_await kube::edit(api_, ocm::klusterlets, key, mutate, options);
    if (written || written.error().kind == kube::ErrorKind::not_found) continue;
    env_.log.info("writing the Klusterlet status failed, retrying", {{"error", written.error().describe()}});
    co_await backoff.pause();
    status_changed_.notify();
  }
}

}  // namespace hubferry::klusterlet
