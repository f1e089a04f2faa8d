#include "phase/own_writes.hpp"

#include <algorithm>

namespace hubferry::phase {

namespace {

bool holds(const std::vector<std::string>& versions, std::string_view version) {
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

/// The event of a version has come: none of an earlier one will.
void forget_up_to(std::vector<std::string>& versions, std::string_view version) {
  const auto found = std::find(versions.begin(), versions.end(), version);
  if (found != versions.end()) versions.erase(versions.begin(), found + 1);
}

}  // namespace

void OwnWrites::begin(const Key& key) {
  auto& entry = entries_[key];
  entry.running = true;
  entry.events.clear();
  entry.reads.clear();
}

void OwnWrites::written(const Key& key, std::string_view version) {
  entries_[key].own.emplace_back(version);
}

void OwnWrites::read(const Key& key, std::string_view version) {
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.running) found->second.reads.emplace_back(version);
}

bool OwnWrites::event(const Key& key, std::string_view version) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return true;
  auto& entry = found->second;
  if (entry.running) {
    entry.events.emplace_back(version);
    return false;
  }
  const bool ours = holds(entry.own, version);
  forget_up_to(entry.own, version);
  drop_if_empty(key);
  return !ours;
}

bool OwnWrites::finish(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  auto& entry = found->second;
  const auto is_foreign = [&](const std::string& version) { return !holds(entry.own, version); };
  const bool foreign = std::any_of(entry.events.begin(), entry.events.end(), is_foreign) ||
                       std::any_of(entry.reads.begin(), entry.reads.end(), is_foreign);
  for (const auto& version : entry.events) forget_up_to(entry.own, version);
  entry.running = false;
  entry.events.clear();
  entry.reads.clear();
  drop_if_empty(key);
  return foreign;
}

void OwnWrites::forget(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.own.clear();
  drop_if_empty(key);
}

void OwnWrites::drop_if_empty(const Key& key) {
  const auto found = entries_.find(key);
  if (found != entries_.end() && !found->second.running && found->second.own.empty()) entries_.erase(found);
}

}  // namespace hubferry::phase
