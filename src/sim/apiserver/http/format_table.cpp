#include "sim/apiserver/http/formats.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "hubferry/async/clock.hpp"

namespace hubferry::sim {

namespace {

/// "5s", "3m", "2h", "4d".
std::string short_span(std::int64_t seconds) {
  if (seconds < 0) return "<invalid>";
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

std::string age(std::string_view timestamp, async::WallTime now) {
  if (timestamp.empty()) return "<unknown>";
  std::int64_t seconds = 0;
  try {
    seconds = std::chrono::duration_cast<std::chrono::seconds>(now - async::parse_time(timestamp)).count();
  } catch (const std::invalid_argument&) {
    return "<invalid>";
  }
  return short_span(seconds);
}

/// "Approved,Issued", as kubectl shows a certificate signing request.
std::string request_condition_text(const kube::Object& request) {
  bool approved = false;
  bool denied = false;
  bool failed = false;
  if (const auto* conditions = request.find({"status", "conditions"}); conditions != nullptr && conditions->is_array())
    for (const auto& condition : conditions->get_array()) {
      if (!condition.is_object()) continue;
      const auto type = kube::string_at(condition.get_object(), {"type"});
      approved = approved || type == "Approved";
      denied = denied || type == "Denied";
      failed = failed || type == "Failed";
    }
  std::string text = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) text += ",Failed";
  if (!request.string_at({"status", "certificate"}).empty()) text += ",Issued";
  return text;
}

std::string request_duration_text(const kube::Object& request) {
  const auto* seconds = request.find({"spec", "expirationSeconds"});
  return seconds != nullptr && seconds->is_int64() ? short_span(seconds->get_int64()) : "<none>";
}

/// "[?(@.type=="Ready")]" on a list.
bool filter_matches(const json::value& item, std::string_view step) {
  const auto at = step.find("@.");
  const auto equal = step.find("==");
  if (at == std::string_view::npos || equal == std::string_view::npos || !item.is_object()) return false;
  const auto field = step.substr(at + 2, equal - at - 2);
  auto wanted = step.substr(equal + 2);
  const auto quote = wanted.find_first_of("'\"");
  if (quote == std::string_view::npos) return false;
  wanted = wanted.substr(quote + 1, wanted.find_last_of("'\"") - quote - 1);
  return kube::string_at(item.get_object(), {field}) == wanted;
}

void evaluate(const json::value& value, const std::vector<std::string>& path, std::size_t depth,
              std::vector<const json::value*>& found) {
  if (depth == path.size()) {
    found.push_back(&value);
    return;
  }
  const auto& step = path[depth];
  if (step.starts_with("[")) {
    const auto* list = value.if_array();
    if (list == nullptr) {
      // ['key'] on an object
      const auto* object = value.if_object();
      const auto* child = object != nullptr && step.size() > 4 && (step[1] == '\'' || step[1] == '"')
                              ? object->if_contains(step.substr(2, step.size() - 4))
                              : nullptr;
      if (child != nullptr) evaluate(*child, path, depth + 1, found);
      return;
    }
    if (step.starts_with("[?")) {
      for (const auto& item : *list)
        if (filter_matches(item, step)) evaluate(item, path, depth + 1, found);
    } else if (step == "[*]") {
      for (const auto& item : *list) evaluate(item, path, depth + 1, found);
    } else {
      std::int64_t index = 0;
      std::from_chars(step.data() + 1, step.data() + step.size(), index);
      if (index < 0) index += static_cast<std::int64_t>(list->size());
      if (index >= 0 && static_cast<std::size_t>(index) < list->size())
        evaluate((*list)[static_cast<std::size_t>(index)], path, depth + 1, found);
    }
    return;
  }
  if (const auto* object = value.if_object())
    if (const auto* child = object->if_contains(step)) evaluate(*child, path, depth + 1, found);
}

json::value cell(const Kind& kind, const Column& column, const kube::Object& object, async::WallTime now) {
  if (kind.resource == kube::resources::certificate_signing_requests) {
    if (column.name == "Condition") return json::value(request_condition_text(object));
    if (column.name == "RequestedDuration") return json::value(request_duration_text(object));
  }
  std::vector<const json::value*> found;
  const json::value root = object.json();
  evaluate(root, column.path, 0, found);
  if (found.empty()) return nullptr;
  if (column.type == "date") return json::value(found[0]->is_string() ? age(found[0]->get_string(), now) : "<unknown>");
  // Of several values the first is used, as on a real server.
  if (!found[0]->is_structured()) return *found[0];
  return json::value(json::serialize(*found[0]));
}

}  // namespace

json::object make_table(const Kind& kind, const std::vector<kube::Object>& objects, async::WallTime now) {
  static const Column age_column{"Age", "date", {"metadata", "creationTimestamp"}, 0};
  std::vector<Column> columns = kind.columns;
  const bool is_definition = kind.resource.kind == "CustomResourceDefinition";
  const bool has_age = std::ranges::any_of(columns, [](const Column& column) { return column.type == "date"; });
  if ((kind.built_in && !has_age) || columns.empty()) columns.push_back(age_column);
  json::array definitions{json::object{{"name", "Name"},
                                       {"type", "string"},
                                       {"format", "name"},
                                       {"description", "Name of the object."},
                                       {"priority", 0}}};
  for (const auto& column : columns)
    definitions.push_back(json::object{{"name", column.name},
                                       {"type", column.type == "date" ? "string" : column.type},
                                       {"format", ""},
                                       {"description", column.name},
                                       {"priority", column.priority}});
  json::array rows;
  for (const auto& object : objects) {
    json::array cells{object.name()};
    for (const auto& column : columns) {
      if (is_definition && column.type == "date")
        cells.emplace_back(object.string_at({"metadata", "creationTimestamp"}));
      else
        cells.push_back(cell(kind, column, object, now));
    }
    json::object shown{{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}};
    if (const auto* metadata = object.find({"metadata"})) shown["metadata"] = *metadata;
    rows.push_back(json::object{{"cells", std::move(cells)}, {"object", std::move(shown)}});
  }
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", json::object{}},
          {"columnDefinitions", std::move(definitions)},
          {"rows", std::move(rows)}};
}

}  // namespace hubferry::sim
