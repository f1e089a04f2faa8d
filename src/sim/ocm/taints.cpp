#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

std::string_view key_of(const json::value& taint) {
  return taint.is_object() ? kube::string_at(taint.get_object(), {"key"}) : std::string_view{};
}

/// Which of our two taints the cluster should have; empty for none.
std::string_view wanted_taint(const Object& cluster) {
  const auto* condition = kube::find_condition(cluster, ocm::names::available);
  const auto status = condition != nullptr ? kube::string_at(*condition, {"status"}) : std::string_view{};
  if (status == "True") return {};
  return status == "False" ? unavailable_taint : unreachable_taint;
}

/// Adds the wanted taint and removes the other; foreign taints stay. True if anything changed.
bool put_taint(json::object& cluster, std::string_view wanted, const std::string& time) {
  json::array taints;
  const auto* present = kube::find(cluster, {"spec", "taints"});
  bool found = false;
  bool changed = false;
  if (present != nullptr && present->is_array())
    for (const auto& taint : present->get_array()) {
      const auto key = key_of(taint);
      const bool is_ours = key == unreachable_taint || key == unavailable_taint;
      if (is_ours && (key != wanted || found)) {
        changed = true;
        continue;
      }
      found |= is_ours;
      taints.push_back(taint);
    }
  if (!found && !wanted.empty()) {
    taints.push_back(json::object{{"key", wanted}, {"effect", "NoSelect"}, {"timeAdded", time}});
    changed = true;
  }
  if (!changed) return false;
  auto& spec = kube::object_in(cluster, "spec");
  if (taints.empty())
    spec.erase("taints");
  else
    spec["taints"] = std::move(taints);
  return true;
}

/// Taints clusters that are not available.
class Taints final : public HubController {
 public:
  explicit Taints(HubContext& hub) : HubController(hub, "taints") {
    follow(hub.clusters, [this](const Key& key, const auto&, const auto& now) {
      if (now == nullptr || now->is_being_deleted()) return;
      json::object copy;
      if (const auto* spec = now->find({"spec"})) copy["spec"] = *spec;
      if (put_taint(copy, wanted_taint(*now), {})) queue_.add(key);
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    if (cluster == nullptr || cluster->is_being_deleted()) co_return Done{};
    const auto time = async::format_time(hub_.env.clock.wall_now());
    kube::Mutation mutate = [time](json::object& object) {
      const Object current{object};
      return put_taint(object, wanted_taint(current), time);
    };
    kube::EditOptions how;
    auto written = co_await kube::edit(hub_.api, ocm::managed_clusters, *cluster, std::move(mutate), how);
    if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
    co_return Done{};
  }
};

}  // namespace

std::unique_ptr<HubController> make_taints(HubContext& hub) {
  return std::make_unique<Taints>(hub);
}

}  // namespace hubferry::sim
