#include <algorithm>

#include "hubferry/kube/selector.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

constexpr std::size_t most_per_decision = 100;
/// Many clusters change at the same time: a placement is reconciled at most once per interval.
constexpr auto batch_interval = std::chrono::milliseconds{500};

bool same_labels(const Object& left, const Object& right) {
  const auto* before = left.find({"metadata", "labels"});
  const auto* after = right.find({"metadata", "labels"});
  return before == nullptr || after == nullptr ? before == after : *before == *after;
}

/// The selectors of a placement: a cluster is selected if any of them matches. None: all are selected.
kube::Result<std::vector<kube::LabelSelector>> selectors_of(const Object& placement) {
  std::vector<kube::LabelSelector> selectors;
  const auto* predicates = placement.find({"spec", "predicates"});
  if (predicates == nullptr || !predicates->is_array()) return selectors;
  for (const auto& predicate : predicates->get_array()) {
    const auto* selector = kube::find(predicate, {"requiredClusterSelector", "labelSelector"});
    const json::object everything;
    auto parsed = kube::LabelSelector::from_json(selector != nullptr && selector->is_object() ? selector->get_object()
                                                                                              : everything);
    if (!parsed) return parsed.error();
    selectors.push_back(std::move(*parsed));
  }
  return selectors;
}

std::string decision_name(const Key& placement, std::size_t index) {
  return placement.name + "-decision-" + std::to_string(index + 1);
}

/// Writes PlacementDecisions: which clusters a Placement selects, by their labels.
class Placement final : public HubController {
 public:
  explicit Placement(HubContext& hub) : HubController(hub, "placement") {
    hub.decisions.add_index("placement", [](const Object& decision) {
      return std::vector{std::string{decision.ns()} + "/" + std::string{decision.label(ocm::names::placement_label)}};
    });
    follow(hub.placements, [this](const Key& key, const auto& old, const auto& now) {
      if (now != nullptr && (old == nullptr || old->generation() != now->generation())) queue_.add(key);
    });
    follow(hub.clusters, [this](const Key&, const auto& old, const auto& now) {
      if (old != nullptr && now != nullptr && same_labels(*old, *now) &&
          old->is_being_deleted() == now->is_being_deleted())
        return;
      hub_.placements.for_each([&](const Key& key, const auto&) { queue_.add_after(key, batch_interval); });
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto placement = hub_.placements.get(key);
    if (placement == nullptr || placement->is_being_deleted()) co_return Done{};
    const auto selectors = selectors_of(*placement);
    if (!selectors) {
      auto refused = co_await report(*placement, 0, selectors.error().message);
      co_return refused;
    }
    const auto names = select(*placement, *selectors);
    const std::size_t pages = std::max<std::size_t>(1, (names.size() + most_per_decision - 1) / most_per_decision);
    for (std::size_t page = 0; page < pages; ++page) {
      const auto first = names.begin() + static_cast<std::ptrdiff_t>(page * most_per_decision);
      const auto last =
          names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), (page + 1) * most_per_decision));
      std::vector<std::string> part{first, last};
      auto written = co_await write_decision(*placement, page, std::move(part));
      if (!written) co_return written.error();
    }
    auto trimmed = co_await remove_beyond(key, pages);
    if (!trimmed) co_return trimmed.error();
    auto reported = co_await report(*placement, names.size(), {});
    co_return reported;
  }

  [[nodiscard]] std::vector<std::string> select(const Object& placement,
                                                const std::vector<kube::LabelSelector>& selectors) const {
    std::vector<std::string> names;
    hub_.clusters.for_each([&](const Key& key, const auto& cluster) {
      if (cluster->is_being_deleted()) return;
      if (selectors.empty() || std::ranges::any_of(selectors, [&](const auto& one) { return one.matches(*cluster); }))
        names.push_back(key.name);
    });
    std::ranges::sort(names);
    const auto* most = placement.find({"spec", "numberOfClusters"});
    if (most != nullptr && most->is_int64() && static_cast<std::size_t>(most->get_int64()) < names.size())
      names.resize(static_cast<std::size_t>(most->get_int64()));
    return names;
  }

  Awaitable<Done> write_decision(Object placement, std::size_t page, std::vector<std::string> names) {
    const Key key{std::string{placement.ns()}, decision_name(placement.key(), page)};
    json::object wanted{
        {"metadata",
         json::object{{"name", key.name},
                      {"namespace", key.ns},
                      {"labels", json::object{{ocm::names::placement_label, placement.name()},
                                              {"cluster.open-cluster-management.io/decision-group-index", "0"}}}}}};
    if (auto owned = kube::set_owner(wanted, ocm::placements, placement); !owned) co_return owned.error();
    auto made = co_await ensure(hub_.api, ocm::placement_decisions, std::move(wanted));
    if (!made) co_return made.error();
    json::array decisions;
    for (const auto& name : names) decisions.push_back(json::object{{"clusterName", name}, {"reason", ""}});
    kube::Mutation mutate = [decisions = std::move(decisions)](json::object& object) {
      json::value status = json::object{{"decisions", decisions}};
      if (const auto* present = object.if_contains("status"); present != nullptr && *present == status) return false;
      object["status"] = std::move(status);
      return true;
    };
    kube::EditOptions how;
    how.subresource = "status";
    auto written = co_await kube::edit(hub_.api, ocm::placement_decisions, made->object, std::move(mutate), how);
    if (!written) co_return written.error();
    co_return Done{};
  }

  Awaitable<Done> remove_beyond(Key placement, std::size_t pages) {
    for (const auto& decision : hub_.decisions.lookup("placement", placement.ns + "/" + placement.name)) {
      bool wanted = false;
      for (std::size_t page = 0; page < pages; ++page) wanted |= decision->name() == decision_name(placement, page);
      if (wanted) continue;
      auto gone = co_await ensure_gone(hub_.api, ocm::placement_decisions, decision->key());
      if (!gone) co_return gone.error();
    }
    co_return Done{};
  }

  Awaitable<Done> report(Object placement, std::size_t selected, std::string problem) {
    const auto now = hub_.env.clock.wall_now();
    kube::Condition condition{"PlacementSatisfied", kube::ConditionStatus::yes, "AllDecisionsScheduled",
                              "All matching clusters are in the decisions", 0};
    if (!problem.empty())
      condition = {"PlacementSatisfied", kube::ConditionStatus::no, "PlacementMisconfigured", problem, 0};
    else if (selected == 0)
      condition = {"PlacementSatisfied", kube::ConditionStatus::no, "NoManagedClusterMatched",
                   "No cluster has the required labels", 0};
    kube::Mutation mutate = [=](json::object& object) {
      auto& status = kube::object_in(object, "status");
      auto& count = status["numberOfSelectedClusters"];
      const auto number = static_cast<std::int64_t>(selected);
      const bool same = count.is_int64() && count.get_int64() == number;
      count = number;
      return kube::set_condition(status, condition, now) || !same;
    };
    kube::EditOptions how;
    how.subresource = "status";
    auto written = co_await kube::edit(hub_.api, ocm::placements, placement, std::move(mutate), how);
    if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
    co_return Done{};
  }
};

}  // namespace

std::unique_ptr<HubController> make_placement(HubContext& hub) {
  return std::make_unique<Placement>(hub);
}

}  // namespace hubferry::sim
