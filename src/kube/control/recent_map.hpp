#pragma once

#include <list>
#include <map>
#include <utility>

namespace hubferry::kube {

/// An LRU map: its size can be bounded by evicting the least recently used entries.
template <typename Key, typename Value>
class RecentMap {
 public:
  /// The entry, which counts as used from now on; null where there is none.
  Value* use(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.end(), order_, found->second);
    return &found->second->second;
  }
  /// The entry as it is.
  Value* find(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->second;
  }

  /// A new entry, used last. There must be none of this key.
  Value& insert(const Key& key, Value value) {
    order_.emplace_back(key, std::move(value));
    index_.emplace(key, std::prev(order_.end()));
    return order_.back().second;
  }

  void erase(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    order_.erase(found->second);
    index_.erase(found);
  }

  /// Evicts the least recently used entry among those that `may_go(value)`; false if there is none.
  template <typename Predicate>
  bool give_up_one(Predicate may_go) {
    for (auto entry = order_.begin(); entry != order_.end(); ++entry) {
      if (!may_go(entry->second)) continue;
      index_.erase(entry->first);
      order_.erase(entry);
      return true;
    }
    return false;
  }

  template <typename Predicate>
  void erase_if(Predicate is_over) {
    for (auto entry = order_.begin(); entry != order_.end();) {
      if (!is_over(entry->first, entry->second)) {
        ++entry;
        continue;
      }
      index_.erase(entry->first);
      entry = order_.erase(entry);
    }
  }

  [[nodiscard]] std::size_t size() const { return index_.size(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  Entries order_;  // used least recently first
  std::map<Key, typename Entries::iterator> index_;
};

}  // namespace hubferry::kube
