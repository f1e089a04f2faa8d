#pragma once

#include <concepts>
#include <forward_list>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/decoder.hpp"

namespace hubferry::kube {

/// What every projection begins with; a schema fills it by itself.
struct Projected {
  Key key;
  std::string resource_version;
};

/// Where strings live that had escapes in them; all others are views into the bytes.
using TextArena = std::forward_list<std::string>;

namespace detail {

/// The untyped tree beneath Schema: keys lead to further keys or to a setter.
class ProjectionTree {
 public:
  using Path = std::initializer_list<std::string_view>;
  using SetText = std::function<void(void* target, std::string_view text)>;
  using SetBool = std::function<void(void* target, bool value)>;
  using SetInteger = std::function<void(void* target, std::int64_t value)>;
  struct TextMap {
    std::function<void(void* target, std::string_view key, std::string_view value)> set;
  };
  struct TextList {
    SetText append;
  };
  struct ObjectList {
    std::function<void*(void* target)> append;  // a new element, filled by the tree below
    std::shared_ptr<const ProjectionTree> element;
  };
  struct Branch {
    std::vector<std::pair<std::string, ProjectionTree>> children;
  };
  using Node = std::variant<Branch, SetText, SetBool, SetInteger, TextMap, TextList, ObjectList>;

  void add(Path path, Node leaf);
  /// Fills `target` from one JSON object; views given to setters live as long as the bytes and the arena.
  Result<void> read(std::string_view bytes, void* target, TextArena& arena) const;

 private:
  friend class ProjectionRun;
  Node node_;
};

std::string serialize(const Object& object);

/// The time, or nothing when the text is none that a server would write.
std::optional<async::WallTime> read_time(std::string_view text);

}  // namespace detail

/// Says which fields of an object go where: written once per type, read by ProjectionDecoder.
///
///     Schema<Widget> schema;
///     schema.text({"spec", "color"}, &Widget::color)
///         .integer({"spec", "size"}, &Widget::size)
///         .text_map({"metadata", "labels"}, [](Widget& w, std::string_view key, std::string_view value) { … })
///         .objects({"status", "conditions"}, &Widget::conditions, condition_schema);
///
/// A target is a member, or a function of (T&, value). Text arrives as a view that is valid until decoding ends: a
/// member of type string_view is for drafts that are turned into something else at once.
/// Fields that are absent, null or of another type than declared leave the target as it was: the API server has
/// checked what its schema demands, and a kind that grows must not stop the controller. JSON that is broken on the
/// way to a declared field is bad_response; other subtrees (managedFields, say) are skipped and never looked at.
/// Nesting costs no stack beyond the schema's own depth.
template <typename T>
class Schema {
 public:
  using Path = detail::ProjectionTree::Path;

  Schema() : tree_(std::make_shared<detail::ProjectionTree>()) {
    if constexpr (std::derived_from<T, Projected>) {
      text({"metadata", "namespace"}, [](T& target, std::string_view value) { target.key.ns = value; });
      text({"metadata", "name"}, [](T& target, std::string_view value) { target.key.name = value; });
      text({"metadata", "resourceVersion"}, [](T& target, std::string_view value) { target.resource_version = value; });
    }
  }

  template <typename Target>
  Schema& text(Path path, Target target) {
    tree_->add(path, detail::ProjectionTree::SetText{
                         [target](void* to, std::string_view value) { assign(to, target, value); }});
    return *this;
  }

  template <typename Target>
  Schema& boolean(Path path, Target target) {
    tree_->add(path, detail::ProjectionTree::SetBool{[target](void* to, bool value) { assign(to, target, value); }});
    return *this;
  }

  template <typename Target>
  Schema& integer(Path path, Target target) {
    tree_->add(path, detail::ProjectionTree::SetInteger{
                         [target](void* to, std::int64_t value) { assign(to, target, value); }});
    return *this;
  }

  /// RFC 3339; the target takes a WallTime.
  template <typename Target>
  Schema& time(Path path, Target target) {
    return text(path, [target](T& to, std::string_view value) {
      if (const auto time = detail::read_time(value)) assign(&to, target, *time);
    });
  }

  /// Calls `set(T&, key, value)` for each string in the object at `path`.
  template <typename Set>
  Schema& text_map(Path path, Set set) {
    tree_->add(path, detail::ProjectionTree::TextMap{[set](void* to, std::string_view key, std::string_view value) {
                 set(*static_cast<T*>(to), key, value);
               }});
    return *this;
  }

  /// Calls `append(T&, text)` for each string in the list at `path`.
  template <typename Append>
  Schema& texts(Path path, Append append) {
    tree_->add(path, detail::ProjectionTree::TextList{
                         [append](void* to, std::string_view value) { append(*static_cast<T*>(to), value); }});
    return *this;
  }

  /// Appends one element for each object in the list at `path`, filled by `element`.
  template <typename List>
  Schema& objects(Path path, List T::* list, const Schema<typename List::value_type>& element) {
    tree_->add(path,
               detail::ProjectionTree::ObjectList{
                   [list](void* to) -> void* { return &(static_cast<T*>(to)->*list).emplace_back(); }, element.tree_});
    return *this;
  }

  /// Fills `target` from the bytes of one JSON object.
  Result<void> read(std::string_view bytes, T& target, TextArena& arena) const {
    return tree_->read(bytes, &target, arena);
  }

 private:
  template <typename>
  friend class Schema;

  template <typename Target, typename Value>
  static void assign(void* to, const Target& target, Value value) {
    if constexpr (std::is_member_object_pointer_v<Target>)
      static_cast<T*>(to)->*target = value;
    else
      target(*static_cast<T*>(to), value);
  }

  std::shared_ptr<detail::ProjectionTree> tree_;
};

/// Draft of a projection: the type itself, or T::Draft where the kept form is built from a looser one.
template <typename T>
struct ProjectionDraft {
  using Type = T;
};
template <typename T>
  requires requires { typename T::Draft; }
struct ProjectionDraft<T> {
  using Type = typename T::Draft;
};

/// Decodes straight from bytes into a T, without a DOM. T (or its Draft, from which T can be constructed) derives
/// from Projected. Thread-safe, as the schema never changes.
/// An object without a name (a bookmark) has a version, but no object.
template <typename T>
class ProjectionDecoder final : public Decoder {
 public:
  using Draft = typename ProjectionDraft<T>::Type;

  explicit ProjectionDecoder(Schema<Draft> schema) : schema_(std::move(schema)) {}

  [[nodiscard]] Result<Decoded> from_bytes(std::string_view bytes) const override {
    TextArena arena;
    Draft draft;
    if (auto read = schema_.read(bytes, draft, arena); !read) return read.error();
    Decoded decoded{draft.key, draft.resource_version, nullptr};
    if (!decoded.key.name.empty()) decoded.object = std::make_shared<const T>(std::move(draft));
    return decoded;
  }

  [[nodiscard]] Result<Decoded> from_object(const Object& object) const override {
    return from_bytes(detail::serialize(object));
  }

 private:
  Schema<Draft> schema_;
};

}  // namespace hubferry::kube
