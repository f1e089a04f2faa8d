#include "migration/admission.hpp"

#include <algorithm>
#include <tuple>

namespace hubferry::migration {

namespace {

/// The contender that holds a name.
using Holders = std::unordered_map<std::string_view, const Contender*>;

std::string cluster_message(std::string_view cluster, const Contender& holder) {
  return "waiting for migration " + kube::to_string(holder.key) + ", which has cluster " + std::string{cluster};
}

/// The names and hubs of a contender's own objects.
std::vector<std::string> own_objects(const Contender& contender) {
  return {contender.key.name + " " + contender.from, contender.key.name + " " + contender.to};
}

std::string slot_message(std::size_t most_active) {
  return "waiting for one of " + std::to_string(most_active) + " migrations to end: no more run at once";
}

std::optional<std::string> find_holder(const Contender& contender, const Holders& clusters,
                                       const std::unordered_map<std::string, const Contender*>& object_names) {
  for (const auto& cluster : contender.clusters)
    if (const auto found = clusters.find(cluster); found != clusters.end())
      return cluster_message(cluster, *found->second);
  for (const auto& object : own_objects(contender))
    if (const auto found = object_names.find(object); found != object_names.end())
      return "waiting for migration " + kube::to_string(found->second->key) +
             ", which has the same name and a hub in common";
  return std::nullopt;
}

}  // namespace

std::unordered_map<std::string, std::string> find_obstacles(std::vector<const Contender*> contenders,
                                                            std::size_t most_active) {
  std::ranges::sort(contenders, [](const Contender* one, const Contender* other) {
    return std::tie(other->active, one->created, one->key) < std::tie(one->active, other->created, other->key);
  });
  std::unordered_map<std::string, std::string> obstacles;
  Holders clusters;
  std::unordered_map<std::string, const Contender*> object_names;
  std::size_t begun = 0;
  for (const auto* contender : contenders) {
    if (!contender->active) {
      if (auto message = find_holder(*contender, clusters, object_names)) {
        obstacles.emplace(contender->uid, std::move(*message));
      } else if (begun >= most_active) {
        obstacles.emplace(contender->uid, slot_message(most_active));
      } else {
        ++begun;
      }
    } else if (!contender->parked) {
      ++begun;
    }
    // Also of one that waits: later ones must not overtake it.
    for (const auto& cluster : contender->clusters) clusters.try_emplace(cluster, contender);
    for (auto& object : own_objects(*contender)) object_names.try_emplace(std::move(object), contender);
  }
  return obstacles;
}

void Admission::see(const Migration& migration) {
  const std::string uid{migration.object.uid()};
  const auto phase = migration.phase();
  if (is_terminal(phase)) {
    forget(uid);
    return;
  }
  auto [entry, is_new] = contenders_.try_emplace(uid);
  auto& contender = entry->second;
  const bool parked = migration.is_cleanup_pending();
  const bool changed_slot = std::exchange(contender.parked, parked) != parked;
  if (!is_new) {
    if (changed_slot) changes();
    // The list of a waiting migration may change; an active one keeps what it claimed.
    auto listed = migration.spec().clusters;
    if (contender.active || contender.rolls_back || !listed || *listed == contender.clusters) return;
    contender.clusters = std::move(*listed);
    changes();
    return;
  }
  contender.uid = uid;
  contender.key = migration.object.key();
  contender.created = migration.object.string_at({"metadata", "creationTimestamp"});
  contender.from = migration.from();
  contender.to = migration.to();
  contender.clusters = migration.spec().clusters.value_or(ClusterNames{});
  contender.active = is_active(phase);
  changes();
}

void Admission::forget(const std::string& uid) {
  if (contenders_.erase(uid) > 0) changes();
}

std::optional<std::string> Admission::obstacle(const std::string& uid) {
  if (!obstacles_) {
    std::vector<const Contender*> all;
    for (const auto& [id, contender] : contenders_) all.push_back(&contender);
    obstacles_ = find_obstacles(std::move(all), most_active_);
  }
  const auto found = obstacles_->find(uid);
  return found == obstacles_->end() ? std::nullopt : std::optional{found->second};
}

void Admission::begin(const std::string& uid) {
  const auto found = contenders_.find(uid);
  if (found == contenders_.end() || found->second.active) return;
  found->second.active = true;
  // This frees nothing: no need to wake the others.
  obstacles_.reset();
  holders_.reset();
}

std::optional<std::string> Admission::holder_message(const std::string& uid, const ClusterNames& clusters) {
  if (!holders_) {
    holders_.emplace();
    for (const auto& [id, contender] : contenders_)
      if (contender.active)
        for (const auto& cluster : contender.clusters) holders_->emplace(cluster, &contender);
  }
  for (const auto& cluster : clusters) {
    const auto [first, last] = holders_->equal_range(cluster);
    for (auto holder = first; holder != last; ++holder)
      if (holder->second->uid != uid) return cluster_message(cluster, *holder->second);
  }
  return std::nullopt;
}

std::optional<std::string> Admission::readmission_obstacle(const std::string& uid, const ClusterNames& clusters) {
  if (auto message = holder_message(uid, clusters)) return message;
  const auto others = std::ranges::count_if(contenders_, [&](const auto& entry) {
    return entry.second.active && !entry.second.parked && entry.second.uid != uid;
  });
  if (static_cast<std::size_t>(others) >= most_active_) return slot_message(most_active_);
  return std::nullopt;
}

std::optional<std::string> Admission::claim(const std::string& uid, ClusterNames clusters) {
  const auto found = contenders_.find(uid);
  if (found == contenders_.end()) return std::nullopt;
  auto message = holder_message(uid, clusters);
  found->second.clusters = std::move(clusters);
  found->second.active = !message;
  changes();
  return message;
}

void Admission::restore(const std::string& uid, ClusterNames clusters) {
  const auto found = contenders_.find(uid);
  if (found == contenders_.end()) return;
  found->second.clusters = std::move(clusters);
  changes();
}

std::optional<std::string> Admission::readmit(const Migration& migration, ClusterNames clusters) {
  const std::string uid{migration.object.uid()};
  auto message = readmission_obstacle(uid, clusters);
  const auto found = contenders_.find(uid);
  // It is Rollbacking, so it counts as active since the cache has shown that. While it waits it holds nothing: of two
  // that wait for each other's clusters, one must be able to begin. Once it waits, nothing changes for the others.
  if (message && found != contenders_.end() && found->second.rolls_back) return message;
  contenders_[uid] = {uid,
                      migration.object.key(),
                      std::string{migration.object.string_at({"metadata", "creationTimestamp"})},
                      migration.from(),
                      migration.to(),
                      std::move(clusters),
                      !message,
                      message.has_value()};
  changes();
  return message;
}

std::optional<std::string> Admission::verdict(const std::string& uid) {
  const auto found = contenders_.find(uid);
  if (found == contenders_.end()) return std::nullopt;
  return found->second.rolls_back ? readmission_obstacle(uid, found->second.clusters) : obstacle(uid);
}

void Admission::changes() {
  obstacles_.reset();
  holders_.reset();
  for (auto* waiter : waiters_)
    if (verdict(waiter->uid) != waiter->message) waiter->woken.wake_all();
}

async::Awaitable<> Admission::changed(std::string uid, std::string message) {
  Waiter waiter{std::move(uid), std::move(message), {}};
  if (verdict(waiter.uid) != waiter.message) co_return;
  struct Entry {
    std::list<Waiter*>& list;
    std::list<Waiter*>::iterator at;
    ~Entry() { list.erase(at); }
  } entry{waiters_, waiters_.insert(waiters_.end(), &waiter)};
  co_await waiter.woken.wait();
}

}  // namespace hubferry::migration
