#include "hubferry/phase/components.hpp"

#include "hubferry/phase/state.hpp"

namespace hubferry::phase {

namespace {

const Components::Map no_components;

}  // namespace

Components::Components(Map entries) {
  if (!entries.empty()) map_ = std::make_shared<Map>(std::move(entries));
}

bool Components::empty() const {
  return map_ == nullptr;
}

std::size_t Components::size() const {
  return map_ == nullptr ? 0 : map_->size();
}

Components::Map::const_iterator Components::begin() const {
  return map_ == nullptr ? no_components.begin() : std::as_const(*map_).begin();
}

Components::Map::const_iterator Components::end() const {
  return map_ == nullptr ? no_components.end() : std::as_const(*map_).end();
}

const State* Components::find(std::string_view name) const {
  if (map_ == nullptr) return nullptr;
  const auto found = map_->find(name);
  return found == map_->end() ? nullptr : &found->second;
}

Components::Map& Components::own() {
  if (map_ == nullptr) {
    map_ = std::make_shared<Map>();
  } else if (map_.use_count() > 1) {
    map_ = std::make_shared<Map>(*map_);
  }
  return *map_;
}

State& Components::operator[](std::string_view name) {
  return own().try_emplace(std::string{name}).first->second;
}

void Components::emplace(std::string_view name, State state) {
  own().try_emplace(std::string{name}, std::move(state));
}

void Components::erase(std::string_view name) {
  if (!contains(name)) return;
  auto& map = own();
  map.erase(map.find(name));
  if (map.empty()) map_.reset();
}

bool Components::operator==(const Components& other) const {
  if (map_ == other.map_) return true;
  return map_ != nullptr && other.map_ != nullptr && *map_ == *other.map_;
}

}  // namespace hubferry::phase
