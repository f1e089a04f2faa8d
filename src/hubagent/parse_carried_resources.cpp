#include <algorithm>

#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/yaml_section.hpp"

namespace hubferry::hubagent {

namespace {

using kube::YamlSection;

std::string required(const YamlSection& section, const std::string& field) {
  auto text = section.text(field);
  if (text.empty()) section.fail(field, "is missing");
  return text;
}

kube::Resource read_resource(const YamlSection& section) {
  kube::Resource resource{section.text("group"), required(section, "version"), required(section, "resource"),
                          required(section, "kind"), true};
  const auto scope = section.text("scope");
  if (scope != "" && scope != "Namespaced" && scope != "Cluster")
    section.fail("scope", "must be Namespaced or Cluster");
  resource.namespaced = scope != "Cluster";
  if (!may_be_copied(resource))
    section.fail("resource", "is granted or created on each hub by itself: it cannot travel");
  return resource;
}

CarriedReference read_reference(const YamlSection& section) {
  CarriedReference reference{required(section, "path"), read_resource(section)};
  if (!reference.resource.namespaced)
    section.fail("scope", "only objects of the cluster's namespace can be referred to");
  return reference;
}

CarriedKind read_kind(const YamlSection& section) {
  CarriedKind kind;
  kind.resource = read_resource(section);
  kind.all = section.flag("all");
  kind.names = section.texts("names");
  kind.with_labels = section.texts("withLabels");
  kind.with_annotations = section.texts("withAnnotations");
  kind.with_status = section.flag("withStatus");
  for (const auto& reference : section.sections("references")) kind.references.push_back(read_reference(reference));

  const bool by_name_only = !kind.all && kind.with_labels.empty() && kind.with_annotations.empty();
  if (by_name_only && kind.names.empty())
    section.fail("names", "selects nothing: give all, names, withLabels or withAnnotations");
  // Anything else of a cluster-scoped kind may belong to another cluster.
  if (!kind.resource.namespaced && !(by_name_only && kind.names == std::vector<std::string>{"{cluster}"}))
    section.fail("names", "a cluster-scoped kind can only be selected by the name {cluster}");
  return kind;
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void add(CarriedResources& table, CarriedKind kind) {
  const auto same = std::ranges::find(table, kind.resource, &CarriedKind::resource);
  if (same == table.end()) {
    table.push_back(std::move(kind));
    return;
  }
  same->all |= kind.all;
  same->with_status |= kind.with_status;
  append(same->names, kind.names);
  append(same->with_labels, kind.with_labels);
  append(same->with_annotations, kind.with_annotations);
  append(same->references, kind.references);
}

}  // namespace

CarriedResources parse_carried_resources(std::string_view text, const std::string& source) {
  CarriedResources table = default_carried_resources();
  const auto top = kube::parse_yaml(text, source);
  for (const auto& section : top.sections("carriedResources")) add(table, read_kind(section));
  return table;
}

}  // namespace hubferry::hubagent
