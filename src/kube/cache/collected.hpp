#pragma once

#include "hubferry/kube/cache_core.hpp"

namespace hubferry::kube {

/// A list, or initial events, on the way: each object once.
class CacheCore::Collected {
 public:
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  void add(Decoded item) {
    bytes_ += item.bytes;
    if (is_indexed_) places_[item.key] = items_.size();
    items_.push_back(std::move(item));
  }

  /// Changes among initial events are rare, so the index is made by the first one. A server that sends many must not
  /// make each of them a search through all.
  void remove(const Key& key) {
    if (!is_indexed_)
      for (std::size_t place = 0; place < items_.size(); ++place) places_[items_[place].key] = place;
    is_indexed_ = true;
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    const auto place = found->second;
    places_.erase(found);
    bytes_ -= items_[place].bytes;
    if (place + 1 != items_.size()) {
      items_[place] = std::move(items_.back());
      places_[items_[place].key] = place;
    }
    items_.pop_back();
  }

  /// Leaves nothing, and gives the memory back.
  std::vector<Decoded> take() { return std::exchange(*this, Collected{}).items_; }

 private:
  std::vector<Decoded> items_;
  std::size_t bytes_ = 0;
  std::unordered_map<Key, std::size_t> places_;
  bool is_indexed_ = false;
};

}  // namespace hubferry::kube
