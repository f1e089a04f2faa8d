#include <algorithm>
#include <stdexcept>

#include "kube/cache/cache_detail.hpp"
#include "kube/cache/collected.hpp"

// What a cache holds and whom it notifies. How it follows the server is in cache_run.cpp.
namespace hubferry::kube {

CacheSubscription& CacheSubscription::operator=(CacheSubscription&& other) noexcept {
  if (this != &other) {
    reset();
    slot_ = std::move(other.slot_);
  }
  return *this;
}

void CacheSubscription::reset() {
  const auto slot = std::move(slot_);
  if (!slot) return;
  slot->active = false;
  // A handler that ends its own subscription still runs: it is dropped when it returns.
  if (!slot->running) slot->handler = nullptr;
}

CacheCore::Pointer CacheCore::get(const Key& key) const {
  const auto found = objects_.find(key);
  return found != objects_.end() ? found->second.object : nullptr;
}

void CacheCore::for_each(const std::function<void(const Key&, const Pointer&)>& visit) const {
  for (const auto& [key, entry] : objects_) visit(key, entry.object);
}

CacheStatus CacheCore::status() const {
  CacheStatus status;
  status.synced = synced();
  status.objects = objects_.size();
  status.resource_version = version_text_;
  status.last_event_age = env_.clock.now() - last_event_;
  status.events = events_;
  status.relists = relists_;
  return status;
}

CacheSubscription CacheCore::subscribe(Handler handler, Replay replay) {
  auto slot = std::make_shared<CacheSubscription::Slot>();
  slot->handler = std::move(handler);
  slot->since = changes_;
  subscribers_.push_back(slot);
  CacheSubscription subscription{slot};
  if (replay == Replay::existing)
    for (const auto& [key, entry] : objects_) slot->handler(key, nullptr, entry.object);
  return subscription;
}

void CacheCore::notify(const Change& change, std::uint64_t number) {
  if (const auto waiting = key_waiters_.find(change.key); waiting != key_waiters_.end())
    waiting->second.list.wake_all();
  bool ended = false;
  // By index: a handler may subscribe others.
  for (std::size_t i = 0; i < subscribers_.size(); ++i) {
    const auto slot = subscribers_[i];
    if (slot->active && slot->since < number) {
      const detail::Running running{*slot};
      slot->handler(change.key, change.old, change.now);
    }
    ended = ended || !slot->active;
  }
  if (ended) std::erase_if(subscribers_, [](const auto& slot) { return !slot->active; });
}

void CacheCore::add_index(std::string name, IndexFunction values) {
  auto& index = indexes_[std::move(name)];
  if (index.values) throw std::logic_error("two indexes of one name");
  index.values = std::move(values);
  for (const auto& entry : objects_)
    for (const auto& value : index.values(entry.second.object.get())) index.objects[value].insert(&entry);
}

std::vector<CacheCore::Pointer> CacheCore::lookup(std::string_view index, const std::string& value) const {
  const auto known = indexes_.find(index);
  if (known == indexes_.end()) throw std::logic_error("no index '" + std::string{index} + "'");
  const auto filed = known->second.objects.find(value);
  if (filed == known->second.objects.end()) return {};
  // By key: the order of addresses would differ from run to run, and a simulated world could not be replayed.
  std::vector<const Objects::value_type*> entries{filed->second.begin(), filed->second.end()};
  std::ranges::sort(entries, {}, [](const auto* entry) -> const Key& { return entry->first; });
  std::vector<Pointer> found;
  found.reserve(entries.size());
  for (const auto* entry : entries) found.push_back(entry->second.object);
  return found;
}

void CacheCore::file(const Objects::value_type& entry) {
  for (auto& [name, index] : indexes_)
    for (const auto& value : index.values(entry.second.object.get())) index.objects[value].insert(&entry);
}

void CacheCore::unfile(const Objects::value_type& entry) {
  for (auto& [name, index] : indexes_) {
    for (const auto& value : index.values(entry.second.object.get())) {
      const auto filed = index.objects.find(value);
      if (filed == index.objects.end()) continue;
      filed->second.erase(&entry);
      if (filed->second.empty()) index.objects.erase(filed);
    }
  }
}

void CacheCore::put(Decoded item, std::uint64_t version) {
  const auto bytes = static_cast<std::uint32_t>(item.bytes);  // an answer is far smaller than 4 GiB
  bytes_ += bytes;
  const auto added =
      objects_.emplace(std::move(item.key), Entry{std::move(item.object), version, generation_, bytes}).first;
  file(*added);
}

void CacheCore::replace(Objects::value_type& entry, Decoded item, std::uint64_t version) {
  unfile(entry);
  const auto bytes = static_cast<std::uint32_t>(item.bytes);
  bytes_ += bytes;
  bytes_ -= entry.second.bytes;
  entry.second = Entry{std::move(item.object), version, generation_, bytes};
  file(entry);
}

CacheCore::Change CacheCore::take_out(Objects::iterator at) {
  unfile(*at);
  bytes_ -= at->second.bytes;
  auto node = objects_.extract(at);
  return {std::move(node.key()), std::move(node.mapped().object), nullptr};
}

void CacheCore::apply(WatchEvent& event) {
  const std::string text = std::move(event.decoded.resource_version);
  const std::uint64_t version = resource_version_number(text);
  const std::uint64_t before = version_;
  const auto found = objects_.find(event.decoded.key);
  const bool known = found != objects_.end();
  // Events come in the order of versions. What is not newer has been seen: sent twice, or late.
  const bool stale = version != 0 && version <= (known ? found->second.version : before);
  std::optional<Change> change;
  if (event.type == WatchEventType::deleted) {
    if (known && (version == 0 || version >= found->second.version)) change = take_out(found);
  } else if (event.type != WatchEventType::bookmark && event.decoded.object && !stale) {
    change = Change{event.decoded.key, known ? found->second.object : nullptr, event.decoded.object};
    if (known)
      replace(*found, std::move(event.decoded), version);
    else
      put(std::move(event.decoded), version);
  }
  advance(version, text);
  if (change) notify(*change, ++changes_);
}

void CacheCore::swap_in(const std::string& resource_version) {
  ++generation_;
  std::vector<Change> changes;
  for (auto& item : collected_->take()) {
    const auto found = objects_.find(item.key);
    if (!item.object) {
      // Without a name it is nothing that a collection can hold. With one it is there, but cannot be decoded: what was
      // known of it stays.
      if (found != objects_.end()) found->second.generation = generation_;
      continue;
    }
    const std::uint64_t version = resource_version_number(item.resource_version);
    if (found == objects_.end()) {
      changes.push_back({item.key, nullptr, item.object});
      put(std::move(item), version);
    } else if (version == 0 || version != found->second.version) {
      changes.push_back({item.key, found->second.object, item.object});
      replace(*found, std::move(item), version);
    } else {
      found->second.generation = generation_;
    }
  }
  for (auto at = objects_.begin(); at != objects_.end();) {
    const auto next = std::next(at);
    // Deleted while the watch was down.
    if (at->second.generation != generation_) changes.push_back(take_out(at));
    at = next;
  }

  if (synced())
    ++relists_;
  else
    synced_.set();
  // A list counts even when it is older than what was known: a server restored from a backup starts over.
  version_ = 0;
  version_text_.clear();
  advance(resource_version_number(resource_version), resource_version);

  std::uint64_t number = changes_;
  changes_ += changes.size();
  for (const auto& change : changes) notify(change, ++number);
}

void CacheCore::advance(std::uint64_t version, const std::string& text) {
  if (version != 0 && version <= version_) return;
  if (!text.empty()) version_text_ = text;
  version_ = version != 0 ? version : version_;
  for (auto& [wanted, waiters] : version_waiters_) {
    if (wanted > version_) break;
    waiters.list.wake_all();
  }
}

}  // namespace hubferry::kube
