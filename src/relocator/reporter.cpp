#include "relocator/reporter.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::relocator {

namespace {

/// A status is written at most this often.
constexpr auto status_interval = std::chrono::seconds{2};

/// So many are kept for a successor.
constexpr std::size_t most_unreleased = 1000;

kube::EventRecorderOptions recorder_options(std::string instance) {
  kube::EventRecorderOptions options;
  options.controller = "hubferry.io/relocator";
  options.instance = std::move(instance);
  return options;
}

/// "2 ClusterDeployments: a/b, c/d". An event takes 1 KiB.
std::string list_of(const std::vector<std::string>& deployments) {
  constexpr std::size_t longest = 800;
  std::string text = std::to_string(deployments.size()) + " ClusterDeployment" + (deployments.size() == 1 ? "" : "s");
  const char* separator = ": ";
  for (const auto& one : deployments) {
    if (text.size() + one.size() > longest) return text + ", …";
    text += separator + one;
    separator = ", ";
  }
  return text;
}

bool has_failed(const Object& deployment) {
  return kube::is_condition_true(deployment, names::condition);
}

}  // namespace

Reporter::Reporter(kube::Api& source, std::string instance, kube::Env env)
    : source_(source),
      env_(std::move(env)),
      events_(source, recorder_options(std::move(instance)), env_),
      // Hive's names, also of the label.
      relocations_(env_.metrics.given_counter_family("hive_cluster_relocations",
                                                     "ClusterDeployments that were moved to another hub, by relocator.",
                                                     {"cluster_relocate"})),
      aborts_(env_.metrics.given_counter_family("hive_aborted_cluster_relocations",
                                                "Relocations that were aborted, by relocator and reason.",
                                                {"cluster_relocate", "reason"})),
      deployments_by_state_(env_.metrics.gauge_family(
          "hubferry_relocator_cluster_deployments",
          "ClusterDeployments that match a relocator, move, cannot be moved, or are not released where they arrived.",
          {"state"})) {
  for (const char* state : {"matching", "moving", "failed", "unreleased"}) deployments_by_state_.with({state}).set(0);
}

void Reporter::follow(const ObjectCache& relocators, Deployments deployments) {
  relocators_ = &relocators;
  deployments_ = std::move(deployments);
}

void Reporter::event(const Object& deployment, kube::EventType type, std::string_view reason, std::string_view note) {
  events_.event(kube::reference_to(ocm::cluster_deployments, deployment), type, reason, "Relocate", note);
}

void Reporter::begun(const Object& deployment, const std::string& relocator) {
  progress_[relocator].begun.push_back(kube::to_string(deployment.key()));
  touch();
}

void Reporter::finishing(const Object& deployment, const std::string& relocator) {
  auto& known = finishing_[deployment.key()];
  known.uid = std::string{deployment.uid()};
  known.relocator = relocator;
}

Awaitable<bool> Reporter::wait_for_deletion(Key key, async::TimePoint deadline) {
  const auto found = finishing_.find(key);
  if (found == finishing_.end()) co_return true;
  const auto seen = found->second.deleted;
  co_return co_await async::before_deadline(env_.clock, deadline, seen->wait());
}

void Reporter::deleted(const Key& key) {
  const auto found = finishing_.extract(key);
  if (found.empty()) return;
  const auto& relocator = found.mapped().relocator;
  found.mapped().deleted->set();
  relocations_.with({relocator}).increment();
  ++moved_[relocator];
  progress_[relocator].relocated.push_back(kube::to_string(key));
  touch();
}

void Reporter::observe(const Object* old, const Object* now) {
  touch();
  const auto found = finishing_.find(now != nullptr ? now->key() : old->key());
  if (found == finishing_.end()) return;
  const Key key = found->first;
  const auto is_it = [&](const Object* object) { return object != nullptr && object->uid() == found->second.uid; };
  const auto is_relocated = [&](const Object* object) {
    return is_it(object) && relocation_of(*object).stage == Stage::complete;
  };
  if (is_it(now)) {
    if (is_relocated(now) && now->is_being_deleted()) deleted(key);
  } else if (is_relocated(old)) {
    deleted(key);
  } else if (is_it(old)) {
    finishing_.erase(found);  // somebody has undone the move, and deleted it
  }
}

void Reporter::report_progress() {
  const auto report = [&](const Object& relocator, const char* reason, const char* what,
                          const std::vector<std::string>& deployments) {
    if (deployments.empty()) return;
    events_.event(kube::reference_to(cluster_relocators, relocator), kube::EventType::normal, reason, "Relocate",
                  what + list_of(deployments));
  };
  for (const auto& [name, progress] : progress_) {
    const auto relocator = relocators_->get({{}, name});
    if (relocator == nullptr) continue;  // deleted meanwhile
    report(*relocator, "Relocating", "moving to another hub: ", progress.begun);
    report(*relocator, "Relocated", "moved to another hub: ", progress.relocated);
  }
  progress_.clear();
}

void Reporter::unreleased(const std::string& relocator, std::vector<Unreleased> deployments, std::string problem) {
  if (deployments.empty()) {
    unreleased_.erase(relocator);
  } else {
    unreleased_[relocator] = {std::move(deployments), std::move(problem)};
  }
  touch();
}

void Reporter::aborted(const Object& deployment, const std::string& relocator, std::string_view reason) {
  aborts_.with({relocator, reason}).increment();
  touch();
  event(deployment, kube::EventType::warning, "RelocationAborted",
        "relocation by ClusterRelocator " + relocator + " aborted: " + std::string{reason});
}

Awaitable<> Reporter::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(events_.run());
    for (;;) {
      co_await changed_.wait();
      report_progress();
      co_await write_statuses();
      co_await env_.clock.sleep_for(status_interval);
    }
  };
  co_await async::with_scope(body);
}

std::map<std::string, Reporter::Count> Reporter::count() const {
  std::vector<RelocatorSpec> specs;
  std::map<std::string, Count> counts;
  relocators_->for_each([&](const Key& key, const ObjectCache::Pointer& relocator) {
    counts[key.name];
    if (auto spec = read_spec(*relocator)) specs.push_back(std::move(*spec));
  });
  deployments_([&](const Object& deployment) {
    const auto relocation = relocation_of(deployment);
    for (const auto& spec : specs) {
      const bool matches = relocation.stage != Stage::complete && spec.selector.matches(deployment);
      const bool moves = relocation.stage == Stage::outgoing && relocation.relocator == spec.name;
      auto& count = counts[spec.name];
      count.matching += matches ? 1 : 0;
      count.moving += moves ? 1 : 0;
      count.failed += (matches || moves) && has_failed(deployment) ? 1 : 0;
    }
  });
  return counts;
}

Awaitable<> Reporter::write_statuses() {
  const auto counts = count();
  Count sum;
  for (const auto& [name, count] : counts) {
    sum.matching += count.matching;
    sum.moving += count.moving;
    sum.failed += count.failed;
    const auto relocator = relocators_->get({{}, name});
    if (relocator != nullptr) co_await write_status(relocator, count);
  }
  deployments_by_state_.with({"matching"}).set(static_cast<double>(sum.matching));
  deployments_by_state_.with({"moving"}).set(static_cast<double>(sum.moving));
  deployments_by_state_.with({"failed"}).set(static_cast<double>(sum.failed));
  std::size_t waiting = 0;
  for (const auto& [name, unreleased] : unreleased_) waiting += unreleased.deployments.size();
  deployments_by_state_.with({"unreleased"}).set(static_cast<double>(waiting));
}

void Reporter::set_released(json::object& status, const std::string& relocator, std::int64_t generation) const {
  using enum kube::ConditionStatus;
  const auto now = env_.clock.wall_now();
  const auto found = unreleased_.find(relocator);
  if (found == unreleased_.end()) {
    status.erase("unreleased");
    kube::set_condition(
        status, {"Released", yes, "AllReleased", "the destination works on all that has arrived", generation}, now);
    return;
  }
  const auto& [deployments, problem] = found->second;
  std::vector<std::string> names;
  json::array kept;
  for (const auto& one : deployments) {
    names.push_back(kube::to_string(one.deployment));
    if (kept.size() < most_unreleased)
      kept.emplace_back(json::object{
          {"namespace", one.deployment.ns}, {"name", one.deployment.name}, {"destination", one.destination}});
  }
  status["unreleased"] = std::move(kept);
  kube::set_condition(status,
                      {"Released", no, "ReleasePending",
                       "arrived, not released on the destination, and retried: " + list_of(names) + ". " +
                           std::string{kube::truncate_utf8(problem, 1024)},
                       generation},
                      now);
}

/// Best effort: the next change writes it again.
Awaitable<> Reporter::write_status(ObjectCache::Pointer relocator, Count count) {
  const std::string name{relocator->name()};
  const auto spec = read_spec(*relocator);
  const auto newly_moved = moved_.contains(name) ? moved_[name] : 0;
  const auto now = env_.clock.wall_now();
  const kube::Mutation mutate = [&](json::object& object) {
    auto& status = kube::object_in(object, "status");
    const json::object before = status;
    const auto* moved = before.if_contains("moved");
    const auto so_far = moved != nullptr && moved->is_number() ? moved->to_number<std::int64_t>() : 0;
    status["matching"] = count.matching;
    status["moving"] = count.moving;
    status["failed"] = count.failed;
    status["moved"] = so_far + static_cast<std::int64_t>(newly_moved);
    using enum kube::ConditionStatus;
    const auto generation = kube::Object{object}.generation();
    kube::set_condition(status,
                        {"Valid", spec ? yes : no, spec ? "Valid" : spec.error().reason,
                         spec ? "the relocator can be used" : spec.error().message, generation},
                        now);
    const bool active = count.matching > 0 || count.moving > 0;
    const auto* const reason = !active ? "NothingToMove" : count.failed > 0 ? "SomeFailed" : "Moving";
    kube::set_condition(status,
                        {"Relocating", active ? yes : no, reason,
                         std::to_string(count.matching) + " ClusterDeployments match, " + std::to_string(count.moving) +
                             " move, " + std::to_string(count.failed) + " cannot be moved",
                         generation},
                        now);
    set_released(status, name, generation);
    return status != before;
  };
  kube::EditOptions options;
  options.subresource = "status";
  auto written = co_await kube::edit(source_, cluster_relocators, *relocator, mutate, options);
  if (written) {
    moved_[name] -= newly_moved;
  } else if (written.error().kind != kube::ErrorKind::not_found) {
    env_.log.warn("writing a relocator's status failed", {{"relocator", name}, {"error", written.error().describe()}});
    touch();
  }
}

}  // namespace hubferry::relocator
