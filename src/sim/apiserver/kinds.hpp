#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/kube/resource.hpp"
#include "sim/apiserver/schema.hpp"

namespace hubferry::sim {

class Collection;

/// A column of `kubectl get`.
struct Column {
  std::string name;
  std::string type;  // string, integer, date …
  std::vector<std::string> path;
  int priority = 0;
};

/// How a kind that is served in two API groups, with the same stored objects, differs in the second one.
struct View {
  struct Field {
    std::string_view served;
    std::string_view stored;
  };
  kube::Resource stored;
  std::vector<Field> fields;  // top-level fields with other names
};

/// One served version of a kind.
struct Kind {
  kube::Resource resource;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool built_in = false;
  bool status = false;              // has a status subresource
  bool counts_generations = false;  // metadata.generation is maintained
  bool stored = true;               // false: answered but not stored (reviews)
  std::vector<std::string> extra_subresources;
  std::vector<std::string> fields;  // allowed in field selectors, besides the metadata
  std::shared_ptr<const Schema> schema;
  std::vector<Column> columns;
  std::string stored_version;        // of the kind's collection
  const View* view = nullptr;        // set: its objects are stored as another kind
  Collection* collection = nullptr;  // null for kinds that are not stored
};

/// Converts a stored object to the served kind.
kube::Object in_version(const Kind& kind, const kube::Object& stored);
/// The same without the Kind itself.
kube::Object in_version(const std::string& api_version, const View* view, const kube::Object& stored);
/// Renames the fields of an object as a client wrote it to those under which it is stored.
void to_stored_names(const Kind& kind, json::object& object);
std::string stored_api_version(const Kind& kind);

/// The kinds that the server serves.
class Kinds {
 public:
  /// Null if not served. The pointer is valid until the kind is removed.
  [[nodiscard]] const Kind* find(std::string_view group, std::string_view version, std::string_view plural) const;
  [[nodiscard]] const Kind* find(const kube::Resource& resource) const {
    return find(resource.group, resource.version, resource.plural);
  }
  std::shared_ptr<const Kind> add(Kind kind);
  /// All versions.
  void remove(const std::string& group, const std::string& plural);
  [[nodiscard]] const std::vector<std::shared_ptr<Kind>>& all() const { return kinds_; }

  /// The kinds of Kubernetes itself.
  static std::vector<Kind> built_in();
  /// The versions that a CustomResourceDefinition serves.
  static std::vector<Kind> from_definition(const json::object& definition);

 private:
  std::vector<std::shared_ptr<Kind>> kinds_;  // in the order of registration
  std::map<std::string, std::shared_ptr<Kind>, std::less<>> by_path_;
};

}  // namespace hubferry::sim
