#include "sim/apiserver/store.hpp"

#include <algorithm>

namespace hubferry::sim {

void WatchBuffer::offer(const EventPtr& event) {
  if (ended || overflowed) return;
  if (!ns_.empty() && event->object.ns() != ns_) return;
  if (!selector_.empty()) {
    const bool now = event->type != Event::Type::deleted && selector_.matches(event->object.json());
    const bool before = event->type != Event::Type::added && selector_.matches(event->previous.json());
    if (!now && !before) return;
  }
  if (pending.size() >= capacity_) {
    overflowed = true;
    pending.clear();
  } else {
    pending.push_back(event);
  }
  waiters.wake_all();
}

void WatchBuffer::cut() {
  ended = true;
  waiters.wake_all();
}

void Collection::forget_history(std::int64_t version) {
  history_.clear();
  floor_ = version;
}

void Collection::offer(const Watches& watches, const EventPtr& event) {
  for (const auto& watch : watches) watch->offer(event);
}

void Collection::record(EventPtr event) {
  offer(of_all_, event);
  if (!of_namespace_.empty())
    if (const auto found = of_namespace_.find(std::string{event->object.ns()}); found != of_namespace_.end())
      offer(found->second, event);
  if (!of_name_.empty())
    if (const auto found = of_name_.find(std::string{event->object.name()}); found != of_name_.end())
      offer(found->second, event);
  history_.push_back(std::move(event));
  if (history_.size() > history_size_) {
    floor_ = history_.front()->version;
    history_.pop_front();
  }
}

void Collection::add_watch(std::shared_ptr<WatchBuffer> watch) {
  if (!watch->selector().only_name().empty())
    of_name_[std::string{watch->selector().only_name()}].push_back(std::move(watch));
  else if (!watch->ns().empty())
    of_namespace_[watch->ns()].push_back(std::move(watch));
  else
    of_all_.push_back(std::move(watch));
}

void Collection::remove_watch(const WatchBuffer& watch) {
  const auto same = [&](const auto& candidate) { return candidate.get() == &watch; };
  const auto remove_from = [&](auto& index, const std::string& key) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    std::erase_if(found->second, same);
    if (found->second.empty()) index.erase(found);
  };
  if (!watch.selector().only_name().empty())
    remove_from(of_name_, std::string{watch.selector().only_name()});
  else if (!watch.ns().empty())
    remove_from(of_namespace_, watch.ns());
  else
    std::erase_if(of_all_, same);
}

std::size_t Collection::cut_watches(std::size_t most) {
  std::size_t cut = 0;
  const auto cut_all = [&](Watches& watches) {
    for (auto& watch : watches)
      if (!watch->ended && cut < most) {
        watch->cut();
        ++cut;
      }
  };
  cut_all(of_all_);
  for (auto& [ns, watches] : of_namespace_) cut_all(watches);
  for (auto& [name, watches] : of_name_) cut_all(watches);
  return cut;
}

std::size_t Collection::watches() const {
  std::size_t count = of_all_.size();
  for (const auto& [ns, watches] : of_namespace_) count += watches.size();
  for (const auto& [name, watches] : of_name_) count += watches.size();
  return count;
}

void Collection::visit(const std::string& ns, const std::function<void(const kube::Key&, const Entry&)>& visit) const {
  auto at = ns.empty() ? entries.begin() : entries.lower_bound(kube::Key{ns, {}});
  for (; at != entries.end() && (ns.empty() || at->first.ns == ns); ++at) visit(at->first, at->second);
}

std::optional<std::map<kube::Key, kube::Object>> Collection::at_version(const std::string& ns,
                                                                        std::int64_t version) const {
  if (version < floor_) return std::nullopt;
  std::map<kube::Key, kube::Object> objects;
  visit(ns, [&](const kube::Key& key, const Entry& entry) { objects.emplace(key, entry.object); });
  // Undo the later changes, the newest first.
  for (auto event = history_.rbegin(); event != history_.rend() && (*event)->version > version; ++event) {
    if (!ns.empty() && (*event)->object.ns() != ns) continue;
    if ((*event)->type == Event::Type::added)
      objects.erase((*event)->object.key());
    else
      objects.insert_or_assign((*event)->object.key(), (*event)->previous);
  }
  return objects;
}

Collection& Store::add_collection() {
  return *collections_.emplace_back(std::make_unique<Collection>(collections_.size(), history_size_, 0));
}

kube::Object Store::put(Collection& collection, const kube::Key& key, json::object object,
                        std::unique_ptr<ManagedFields> managed, const std::string* creator) {
  const auto version = ++version_;
  object["metadata"].as_object()["resourceVersion"] = std::to_string(version);
  kube::Object stored = compact_object(object);
  auto [at, is_new] = collection.entries.try_emplace(key);
  auto& entry = at->second;
  const Reference reference{collection.id(), key};
  if (is_new)
    live_.emplace(stored.uid());
  else
    index(reference, entry.object, false);
  index(reference, stored, true);
  auto event = std::make_shared<Event>(Event{is_new ? Event::Type::added : Event::Type::modified, version, stored,
                                             is_new ? kube::Object{} : std::move(entry.object)});
  entry.object = stored;
  entry.managed = std::move(managed);
  if (is_new) entry.creator = creator;
  collection.record(event);
  if (on_change) on_change(collection, is_new ? nullptr : &event->previous, &stored);
  return stored;
}

kube::Object Store::erase(Collection& collection, const kube::Key& key) {
  const auto at = collection.entries.find(key);
  kube::Object previous = std::move(at->second.object);
  collection.entries.erase(at);
  live_.erase(std::string{previous.uid()});
  index({collection.id(), key}, previous, false);
  const auto version = ++version_;
  json::object last = previous.json();
  last["metadata"].as_object()["resourceVersion"] = std::to_string(version);
  auto object = compact_object(last);
  const auto event = std::make_shared<Event>(Event{Event::Type::deleted, version, object, std::move(previous)});
  collection.record(event);
  if (on_change) on_change(collection, &event->previous, nullptr);
  return object;
}

void Store::compact() {
  for (auto& collection : collections_) collection->forget_history(version_);
}

std::vector<Store::Reference> Store::dependents(std::string_view uid) const {
  const auto found = dependents_.find(uid);
  if (found == dependents_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Store::index(const Reference& reference, const kube::Object& object, bool add) {
  const auto* owners = object.find({"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return;
  for (const auto& owner : owners->get_array()) {
    if (!owner.is_object()) continue;
    const auto uid = kube::string_at(owner.get_object(), {"uid"});
    if (add) {
      dependents_[std::string{uid}].insert(reference);
    } else if (const auto found = dependents_.find(uid); found != dependents_.end()) {
      found->second.erase(reference);
      if (found->second.empty()) dependents_.erase(found);
    }
  }
}

}  // namespace hubferry::sim
