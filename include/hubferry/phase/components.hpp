#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace hubferry::phase {

struct State;

/// The States of a composite's components, by name.
///
/// Copy on write: a waiting machine holds a copy of its resource, and thousands of machines wait.
class Components {
 public:
  using Map = std::map<std::string, State, std::less<>>;

  Components() = default;
  explicit Components(Map entries);

  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Map::const_iterator begin() const;
  [[nodiscard]] Map::const_iterator end() const;
  /// nullptr: there is none.
  [[nodiscard]] const State* find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The component's State, to be changed; a new one if there is none.
  State& operator[](std::string_view name);
  void emplace(std::string_view name, State state);
  void erase(std::string_view name);
  void clear() { map_.reset(); }

  bool operator==(const Components& other) const;

 private:
  Map& own();

  std::shared_ptr<Map> map_;  // null: empty. Shared: not to be changed
};

}  // namespace hubferry::phase
