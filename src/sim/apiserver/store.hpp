#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/object.hpp"
#include "sim/apiserver/managed_fields.hpp"
#include "sim/apiserver/object_selector.hpp"

namespace hubferry::sim {

/// A copy of the object in one block of memory of exactly its size, instead of one allocation per key and string.
/// Copies of it may be changed freely, on any loop: what they add is allocated from the heap.
kube::Object compact_object(const json::object& object);

/// One change of one object. Shared between the history and all watches.
struct Event {
  enum class Type { added, modified, deleted };
  Type type;
  std::int64_t version;
  kube::Object object;    // for deleted: the last state, with the version of the deletion
  kube::Object previous;  // empty for added
};
using EventPtr = std::shared_ptr<const Event>;

struct Entry {
  kube::Object object;
  std::unique_ptr<ManagedFields> managed;  // null: all fields are owned by `creator`
  const std::string* creator = nullptr;    // interned field manager
};

/// The events that one watch has not delivered yet.
class WatchBuffer {
 public:
  WatchBuffer(std::string ns, ObjectSelector selector, std::size_t capacity)
      : ns_(std::move(ns)), selector_(std::move(selector)), capacity_(capacity) {}

  /// Adds the event if the watch selects it.
  void offer(const EventPtr& event);
  /// Ends the stream and wakes the reader.
  void cut();

  [[nodiscard]] const std::string& ns() const { return ns_; }
  [[nodiscard]] const ObjectSelector& selector() const { return selector_; }

  std::deque<EventPtr> pending;
  bool overflowed = false;  // the reader was too slow
  bool ended = false;
  async::WaitList waiters;

 private:
  std::string ns_;
  ObjectSelector selector_;
  std::size_t capacity_;
};

/// The objects of one kind, their recent history, and their watches.
class Collection {
 public:
  Collection(std::size_t id, std::size_t history_size, std::int64_t floor)
      : id_(id), history_size_(history_size), floor_(floor) {}

  using Entries = std::map<kube::Key, Entry>;
  Entries entries;

  [[nodiscard]] std::size_t id() const { return id_; }
  [[nodiscard]] const std::deque<EventPtr>& history() const { return history_; }
  /// The oldest version from which a watch can start.
  [[nodiscard]] std::int64_t floor() const { return floor_; }
  void forget_history(std::int64_t version);
  void record(EventPtr event);

  void add_watch(std::shared_ptr<WatchBuffer> watch);
  void remove_watch(const WatchBuffer& watch);
  /// Ends up to `most` watches, the oldest first.
  std::size_t cut_watches(std::size_t most);
  [[nodiscard]] std::size_t watches() const;

  /// Entries of a namespace, or all. `visit` may not change the collection.
  void visit(const std::string& ns, const std::function<void(const kube::Key&, const Entry&)>& visit) const;
  /// The objects as they were at `version`; nothing if the history does not reach back that far.
  [[nodiscard]] std::optional<std::map<kube::Key, kube::Object>> at_version(const std::string& ns,
                                                                            std::int64_t version) const;

 private:
  using Watches = std::vector<std::shared_ptr<WatchBuffer>>;
  static void offer(const Watches& watches, const EventPtr& event);

  std::size_t id_;
  std::size_t history_size_;
  std::int64_t floor_;
  std::deque<EventPtr> history_;
  // Thousands of agents watch one object each: indexed, so that a change is not offered to all of them.
  Watches of_all_;
  std::unordered_map<std::string, Watches> of_namespace_;
  std::unordered_map<std::string, Watches> of_name_;
};

/// The state of an API server: one version counter, collections, and an index of owners.
class Store {
 public:
  explicit Store(std::size_t history_size) : history_size_(history_size) {}

  Collection& add_collection();
  [[nodiscard]] std::int64_t version() const { return version_; }

  /// Writes `object`, whose metadata.resourceVersion it sets, and notifies the watches. Returns it as stored.
  kube::Object put(Collection& collection, const kube::Key& key, json::object object,
                   std::unique_ptr<ManagedFields> managed, const std::string* creator);
  /// Removes; returns the last state with the version of the deletion.
  kube::Object erase(Collection& collection, const kube::Key& key);
  /// Drops the history of all collections.
  void compact();
  /// Called after every change, also those of the server itself. Null `before`: created; null `after`: erased.
  std::function<void(const Collection& collection, const kube::Object* before, const kube::Object* after)> on_change;

  struct Reference {
    std::size_t collection;
    kube::Key key;
    auto operator<=>(const Reference&) const = default;
  };
  /// The objects with an owner reference to this uid.
  [[nodiscard]] std::vector<Reference> dependents(std::string_view uid) const;
  [[nodiscard]] bool exists(std::string_view uid) const { return live_.contains(std::string{uid}); }
  [[nodiscard]] Collection& collection(std::size_t id) { return *collections_[id]; }
  [[nodiscard]] const std::vector<std::unique_ptr<Collection>>& collections() const { return collections_; }

  const std::string* intern(const std::string& text) { return &*interned_.insert(text).first; }

 private:
  void index(const Reference& reference, const kube::Object& object, bool add);

  std::size_t history_size_;
  std::int64_t version_ = 1;
  std::vector<std::unique_ptr<Collection>> collections_;
  std::map<std::string, std::set<Reference>, std::less<>> dependents_;
  std::unordered_set<std::string> live_;  // uids
  std::set<std::string> interned_;
};

}  // namespace hubferry::sim
