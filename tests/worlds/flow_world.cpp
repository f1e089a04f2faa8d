#include "flow_world.hpp"

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::worlds {

namespace phases = migration::phases;

namespace {

// The Lease of a manager.
constexpr auto lease = 15s;
// How long an agent's write is under way when it is killed in flight.
constexpr auto in_flight = 5s;
// How long the migration may take after the last crash, and how long the world is at rest before the end is checked.
constexpr auto flow_limit = 6h;
constexpr auto flow_rest = 8min;

sim::WorldOptions two_hubs() {
  sim::WorldOptions options;
  options.clusters = 3;
  // hubferry's own agents: they leave a target that does not register them, and no person is needed for that.
  options.upstream_agents = false;
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  options.server.bookmark_interval = 1h;
  options.server.record_requests = std::getenv("HUBFERRY_TIMELINE") != nullptr;
  return options;
}

std::map<std::string, std::string> on_first_hub(const std::vector<std::string>& names) {
  std::map<std::string, std::string> places;
  for (const auto& name : names) places[name] = "hub1";
  return places;
}

kube::Error lost_answer(const kube::Api& server) {
  return {kube::ErrorKind::ambiguous, 0, {}, "connection to " + std::string{server.name()} + " reset", std::nullopt};
}

std::string describe(const kube::Request& request, std::string_view server) {
  static constexpr std::array verbs{"get", "create", "update", "patch", "apply", "delete"};
  auto name = request.key;
  if (request.verb == kube::Verb::create && request.body.is_object())
    name.name = kube::string_at(request.body.get_object(), {"metadata", "name"});
  return std::string{verbs[static_cast<std::size_t>(request.verb)]} + " " + request.resource.plural +
         (request.subresource.empty() ? "" : "/" + request.subresource) + " " + kube::to_string(name) + " on " +
         std::string{server};
}

bool counts(const kube::Request& request) {
  static const std::set<std::string> not_counted{"leases", "events", "selfsubjectaccessreviews",
                                                 "subjectaccessreviews"};
  return request.verb != kube::Verb::get && !not_counted.contains(request.resource.plural);
}

/// Passes everything on but the writes.
class WireBase : public kube::Api {
 public:
  explicit WireBase(std::shared_ptr<kube::Api> inner) : inner_(std::move(inner)) {}
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    return inner_->list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    return inner_->watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override { return inner_->get_path(std::move(path)); }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 protected:
  std::shared_ptr<kube::Api> inner_;
};

}  // namespace

std::string to_string(const Point& point) {
  static constexpr std::array fates{"lives", "killed before", "killed after", "killed in flight", "answer lost"};
  std::string text = fates[static_cast<std::size_t>(point.fate)];
  if (point.fate != Fate::answer_lost) text += ", successor after " + async::format_duration(point.successor);
  return text;
}

const std::vector<Point>& points_of_a_write() {
  static const auto all = [] {
    std::vector<Point> points;
    for (const auto fate : {Fate::killed_before, Fate::killed_after, Fate::killed_in_flight})
      for (const async::Duration after : {async::Duration{0s}, async::Duration{lease}, async::Duration{1h}})
        points.push_back({fate, after});
    points.push_back({Fate::answer_lost, 0s});
    return points;
  }();
  return all;
}

std::size_t stride_of_matrix(std::size_t by_default) {
  const char* given = std::getenv("HUBFERRY_CRASH_MATRIX");
  if (given == nullptr) return by_default;
  if (std::string_view{given} == "all") return 1;
  const auto stride = std::strtoul(given, nullptr, 10);
  if (stride == 0) throw std::invalid_argument("HUBFERRY_CRASH_MATRIX is a number or \"all\"");
  return stride;
}

Point CrashMatrix::decide(const std::string& write) {
  // A clone has one accident; what follows is another process's.
  if (is_clone_) return {};
  ++writes_;
  const auto what = "write " + std::to_string(writes_) + ", " + write + ", ";
  for (const auto& point : points_of_a_write())
    if (try_point(what + to_string(point))) return point;
  return {};
}

bool CrashMatrix::branch(const std::string& what) {
  return !is_clone_ && try_point(what);
}

bool CrashMatrix::try_point(const std::string& what) {
  if (candidates_++ % stride_ != 0) return false;
  const auto report = clone();
  is_clone_ = !report;
  if (is_clone_) return true;
  ++points_;
  if (!report->text.empty() || !report->crash.empty()) failures_ += what + ":\n" + report->crash + report->text;
  return false;
}

void CrashMatrix::finish(const std::string& violations) {
  if (is_clone_) report_and_exit(violations);
  if (!violations.empty()) failures_ += "without a crash:\n" + violations;
}

/// Between the manager and a server.
class FlowWorld::Wire final : public WireBase {
 public:
  Wire(std::shared_ptr<kube::Api> inner, FlowWorld& world) : WireBase(std::move(inner)), world_(world) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    if (!counts(request)) co_return co_await inner_->call(std::move(request));
    const auto point = world_.matrix_.decide(describe(request, inner_->name()));
    auto& victim = *world_.managers_.front();
    const bool dies = point.fate != Fate::lives && point.fate != Fate::answer_lost;
    if (dies) world_.spawn(world_.succeed_after(point.successor));
    // What the process would do with the answer, it does no more: behind this there is a closed gate.
    if (point.fate == Fate::killed_before || point.fate == Fate::killed_in_flight) victim.kill();
    if (point.fate == Fate::killed_before) co_return lost_answer(*inner_);
    if (point.fate == Fate::killed_in_flight) co_await world_.world.clock().sleep_until(latest_arrival(request));
    auto answer = co_await inner_->call(std::move(request));
    if (point.fate == Fate::killed_after) victim.kill();
    if (point.fate == Fate::answer_lost) co_return lost_answer(*inner_);
    co_return answer;
  }

 private:
  /// It is in flight as long as a leader may let it be: no write has a deadline beyond its term.
  async::TimePoint latest_arrival(const kube::Request& request) const {
    const auto most = world_.world.clock().now() + lease;
    return request.deadline == async::TimePoint{} ? most : std::min(most, request.deadline - 1ms);
  }

  FlowWorld& world_;
};

/// Between the agents and a hub. A dead agent's connections stay dead.
class FlowWorld::AgentWire final : public WireBase {
 public:
  AgentWire(std::shared_ptr<kube::Api> inner, FlowWorld& world) : WireBase(std::move(inner)), world_(world) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    if (dead_) co_return lost_answer(*inner_);
    const bool heartbeat = request.resource.plural == "leases";
    if (!world_.hot_ || (!counts(request) && !heartbeat)) co_return co_await inner_->call(std::move(request));
    const auto point = world_.matrix_.decide("an agent's " + describe(request, inner_->name()));
    if (point.fate == Fate::lives) co_return co_await inner_->call(std::move(request));
    if (point.fate == Fate::killed_in_flight) {
      // The migration may end meanwhile; the flow may not, before the agents have died and are back.
      world_.spawn(world_.sleep(in_flight + 1s));
      co_await world_.sleep(in_flight);
    }
    auto answer = kube::Result<kube::Object>{lost_answer(*inner_)};
    if (point.fate != Fate::killed_before) answer = co_await inner_->call(std::move(request));
    // Whose it was, its name says in most requests; all of them die and start again.
    if (point.fate != Fate::answer_lost) {
      dead_ = true;
      for (const auto& name : world_.names) world_.spawn(world_.restart_after(name, point.successor));
    }
    co_return lost_answer(*inner_);
  }

 private:
  FlowWorld& world_;
  bool dead_ = false;
};

FlowWorld::FlowWorld(CrashMatrix& matrix, Victim victim, Checks checks)
    : world(two_hubs()),
      names(world.world().clusters()),
      invariants((weaken_checks(world, checks), world.run(world.world().wait_settled()), world), on_first_hub(names)),
      matrix_(matrix),
      victim_(victim),
      person_(world.global().api_as({person_user, {"system:masters"}, {}})) {
  invariants.on_phase = [this](const std::string&, const std::string& phase) {
    if (const auto found = acts_.find(phase); found != acts_.end() && found->second) {
      const auto act = std::exchange(found->second, {});
      act();
    }
    hot_ = victim_ == Victim::agents && phase == phases::registering;
  };
  if (victim_ == Victim::agents)
    world.network().intercept([this](std::shared_ptr<kube::Api> api) -> std::shared_ptr<kube::Api> {
      return std::make_shared<AgentWire>(std::move(api), *this);
    });
}

void FlowWorld::start_manager() {
  migration::test::SimulatedManagerOptions options;
  options.identity = "manager-" + std::to_string(managers_.size());
  options.user = manager_user + options.identity;
  options.controller = controller;
  if (victim_ == Victim::manager && managers_.empty())
    options.wire = [this](std::shared_ptr<kube::Api> api) -> std::shared_ptr<kube::Api> {
      return std::make_shared<Wire>(std::move(api), *this);
    };
  managers_.push_back(std::make_unique<migration::test::SimulatedManager>(world, std::move(options)));
}

void FlowWorld::spawn(Awaitable<> task) {
  ++busy_;
  auto counted = [](FlowWorld& flow, Awaitable<> inner) -> Awaitable<> {
    co_await std::move(inner);
    --flow.busy_;
  };
  world.spawn(counted(*this, std::move(task)));
}

Awaitable<> FlowWorld::succeed_after(async::Duration delay) {
  co_await sleep(delay);
  start_manager();
}

void FlowWorld::switch_off(const std::string& cluster) {
  const auto* store = world.world().agents().store_of(cluster);
  if (store == nullptr) return;
  off_[cluster] = {cluster, store->bootstraps(), store->secret()};
  world.world().agents().remove(cluster);
}

void FlowWorld::switch_on(const std::string& cluster) {
  const auto found = off_.find(cluster);
  if (found == off_.end()) return;
  world.world().agents().add(std::move(found->second));
  off_.erase(found);
}

void FlowWorld::switch_off_both() {
  switch_off(names[0]);
  switch_off(names[1]);
}

Awaitable<> FlowWorld::switch_on_later() {
  co_await sleep(10min);
  for (const auto& name : names) switch_on(name);
}

Awaitable<> FlowWorld::restart_after(std::string cluster, async::Duration delay) {
  switch_off(cluster);
  co_await sleep(delay + 1s);
  switch_on(cluster);
}

Awaitable<> FlowWorld::migrate() {
  json::object spec{
      {"from", "hub1"}, {"to", "hub2"}, {"includedManagedClusters", json::array{names[0].c_str(), names[1].c_str()}}};
  json::object object{{"metadata", json::object{{"name", "m1"}, {"namespace", "default"}}}, {"spec", std::move(spec)}};
  (void)co_await person().create(migration::managed_cluster_migrations, std::move(object));
}

Awaitable<> FlowWorld::delete_migration() {
  (void)co_await person().remove(migration::managed_cluster_migrations, {"default", "m1"});
}

Awaitable<> FlowWorld::delete_copy(std::string cluster) {
  (void)co_await world.server("hub2")
      .api_as({person_user, {"system:masters"}, {}})
      ->remove(ocm::managed_clusters, {"", cluster});
}

Awaitable<> FlowWorld::edit_spec(json::object edit) {
  json::object patch{{"spec", std::move(edit)}};
  (void)co_await person().merge_patch(migration::managed_cluster_migrations, {"default", "m1"}, std::move(patch));
}

Awaitable<> FlowWorld::annotate(std::string annotation, std::string value) {
  json::object annotations{{annotation, value}};
  json::object patch{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
  (void)co_await person().merge_patch(migration::managed_cluster_migrations, {"default", "m1"}, std::move(patch));
}

Awaitable<> FlowWorld::phase_reached(std::string phase) {
  while (invariants.phase_of("m1") != phase) co_await sleep(1s);
}

void FlowWorld::run() {
  start_manager();
  world.run(migrate());
  const auto end = world.clock().now() + flow_limit;
  while ((busy_ > 0 || !invariants.all_ended()) && world.clock().now() < end) world.run_for(1s);
  hot_ = false;
  world.run_for(flow_rest);
  invariants.check_end();
  std::string found = invariants.violations();
  if (!found.empty() && world.world().options().server.record_requests) found += world.timeline();
  matrix_.finish(found);
}

}  // namespace hubferry::worlds
