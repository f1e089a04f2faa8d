#include "hubferry/kube/projection.hpp"

#include <boost/json/serialize.hpp>
#include <stdexcept>

#include "kube/cache/json_cursor.hpp"

namespace hubferry::kube::detail {

namespace {

template <typename... Case>
struct Overload : Case... {
  using Case::operator()...;
};

const ProjectionTree* find_child(const ProjectionTree::Branch& branch, std::string_view key) {
  for (const auto& [name, child] : branch.children)
    if (name == key) return &child;
  return nullptr;
}

}  // namespace

/// One pass over one object.
class ProjectionRun {
 public:
  ProjectionRun(std::string_view bytes, TextArena& arena) : cursor_(bytes), arena_(arena) {}

  Result<void> read(const ProjectionTree& tree, void* target) {
    if (cursor_.peek() != '{') cursor_.fail("expected a JSON object");
    read_value(tree, target);
    cursor_.finish();
    if (cursor_.error()) return *cursor_.error();
    return {};
  }

 private:
  void read_value(const ProjectionTree& tree, void* target) {
    std::visit(Overload{
                   [&](const ProjectionTree::Branch& branch) { read_branch(branch, target); },
                   [&](const ProjectionTree::SetText& set) { read_text(set, target); },
                   [&](const ProjectionTree::SetBool& set) {
                     if (const auto value = cursor_.boolean()) set(target, *value);
                   },
                   [&](const ProjectionTree::SetInteger& set) {
                     if (const auto value = cursor_.integer()) set(target, *value);
                   },
                   [&](const ProjectionTree::TextMap& map) { read_map(map, target); },
                   [&](const ProjectionTree::TextList& list) { read_list(list, target); },
                   [&](const ProjectionTree::ObjectList& list) { read_list(list, target); },
               },
               tree.node_);
  }

  /// False when the value is of another kind: then it has been skipped.
  bool begins_with(char c) {
    if (cursor_.peek() == c) return true;
    cursor_.value();
    return false;
  }

  void read_branch(const ProjectionTree::Branch& branch, void* target) {
    if (!begins_with('{') || !cursor_.open('{', '}', "expected an object")) return;
    do {
      const auto key = cursor_.key();
      if (const auto* child = find_child(branch, key); child != nullptr)
        read_value(*child, target);
      else
        cursor_.value();
    } while (cursor_.more('}'));
  }

  void read_text(const ProjectionTree::SetText& set, void* target) {
    if (!begins_with('"')) return;
    const auto text = cursor_.string("expected a string", arena_);
    if (!cursor_.error()) set(target, text);
  }

  void read_map(const ProjectionTree::TextMap& map, void* target) {
    if (!begins_with('{') || !cursor_.open('{', '}', "expected an object")) return;
    do {
      const auto key = cursor_.string("expected a key", arena_);
      cursor_.expect(':', "expected a colon");
      if (!begins_with('"')) continue;
      const auto value = cursor_.string("expected a string", arena_);
      if (!cursor_.error()) map.set(target, key, value);
    } while (cursor_.more('}'));
  }

  template <typename List>
  void read_list(const List& list, void* target) {
    if (!begins_with('[') || !cursor_.open('[', ']', "expected a list")) return;
    do read_element(list, target);
    while (cursor_.more(']'));
  }

  void read_element(const ProjectionTree::TextList& list, void* target) { read_text(list.append, target); }

  void read_element(const ProjectionTree::ObjectList& list, void* target) {
    if (begins_with('{')) read_value(*list.element, list.append(target));
  }

  JsonCursor cursor_;
  TextArena& arena_;
};

void ProjectionTree::add(Path path, Node leaf) {
  ProjectionTree* at = this;
  for (const auto step : path) {
    auto* branch = std::get_if<Branch>(&at->node_);
    if (branch == nullptr) throw std::logic_error("a field below '" + std::string{step} + "' has a setter of its own");
    const auto* known = find_child(*branch, step);
    at = known != nullptr ? const_cast<ProjectionTree*>(known)
                          : &branch->children.emplace_back(std::string{step}, ProjectionTree{}).second;
  }
  at->node_ = std::move(leaf);
}

Result<void> ProjectionTree::read(std::string_view bytes, void* target, TextArena& arena) const {
  return ProjectionRun{bytes, arena}.read(*this, target);
}

std::string serialize(const Object& object) {
  return boost::json::serialize(object.json());
}

std::optional<async::WallTime> read_time(std::string_view text) {
  // Nanoseconds since 1970 hold three centuries only.
  if (text.size() < 4 || text.substr(0, 4) < "1700" || text.substr(0, 4) > "2200") return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace hubferry::kube::detail
