#include "kube/http/wire_request.hpp"

#include <boost/json/serialize.hpp>

namespace hubferry::kube::http {

void append_percent_encoded(std::string& out, std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
}

void Query::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  text_ += text_.empty() ? '?' : '&';
  append_percent_encoded(text_, name);
  text_ += '=';
  append_percent_encoded(text_, value);
}

void Query::add_number(std::string_view name, std::int64_t value) {
  if (value > 0) add(name, std::to_string(value));
}

namespace {

std::string_view to_policy(Propagation propagation) {
  switch (propagation) {
    case Propagation::server_default:
      return "";
    case Propagation::background:
      return "Background";
    case Propagation::foreground:
      return "Foreground";
    case Propagation::orphan:
      return "Orphan";
  }
  return "";
}

std::string delete_options(const Request& request) {
  json::object options{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (const auto policy = to_policy(request.propagation); !policy.empty()) options["propagationPolicy"] = policy;
  if (request.dry_run) options["dryRun"] = json::array{"All"};
  json::object preconditions;
  if (!request.precondition_uid.empty()) preconditions["uid"] = request.precondition_uid;
  if (!request.precondition_resource_version.empty())
    preconditions["resourceVersion"] = request.precondition_resource_version;
  if (!preconditions.empty()) options["preconditions"] = std::move(preconditions);
  return json::serialize(options);
}

std::string_view patch_content_type(PatchType type) {
  switch (type) {
    case PatchType::merge:
      return "application/merge-patch+json";
    case PatchType::json:
      return "application/json-patch+json";
    case PatchType::strategic:
      return "application/strategic-merge-patch+json";
  }
  return "";
}

void describe_write(WireRequest& wire, std::string_view method, std::string_view verb, std::string_view content_type) {
  wire.method = method;
  wire.verb = verb;
  wire.content_type = content_type;
  wire.read_only = false;
}

}  // namespace

std::string WireRequest::display() const {
  return std::string{method} + " " + path;
}

WireRequest wire_request(const Request& request, std::string_view default_field_manager) {
  WireRequest wire;
  wire.path = request.resource.path(request.key, request.subresource);
  if (request.verb == Verb::get) {
    wire.method = "GET";
    wire.verb = "GET";
    return wire;
  }
  if (request.verb == Verb::remove) {
    describe_write(wire, "DELETE", "DELETE", "application/json");
    wire.body = delete_options(request);
    return wire;
  }

  Query query;
  query.add("fieldManager", request.field_manager.empty() ? default_field_manager : request.field_manager);
  if (request.dry_run) query.add("dryRun", "All");
  switch (request.verb) {
    case Verb::create:
      describe_write(wire, "POST", "CREATE", "application/json");
      break;
    case Verb::update:
      describe_write(wire, "PUT", "UPDATE", "application/json");
      break;
    case Verb::patch:
      describe_write(wire, "PATCH", "PATCH", patch_content_type(request.patch_type));
      break;
    default:
      // JSON is YAML.
      describe_write(wire, "PATCH", "APPLY", "application/apply-patch+yaml");
      query.add_flag("force", request.force);
      break;
  }
  wire.query = query.text();
  wire.body = json::serialize(request.body);
  return wire;
}

WireRequest wire_request(const Resource& resource, const ListOptions& options) {
  Query query;
  query.add("labelSelector", options.label_selector);
  query.add("fieldSelector", options.field_selector);
  query.add_number("limit", options.limit);
  query.add("continue", options.continue_token);
  query.add("resourceVersion", options.resource_version.value_or(""));
  query.add("resourceVersionMatch", options.resource_version_match);
  WireRequest wire;
  wire.method = "GET";
  wire.verb = "LIST";
  wire.slow_answer = options.deadline == TimePoint{};
  wire.path = resource.path({options.ns, {}});
  wire.query = query.text();
  return wire;
}

WireRequest wire_request(const Resource& resource, const WatchOptions& options) {
  Query query;
  query.add("watch", "true");
  query.add("labelSelector", options.label_selector);
  query.add("fieldSelector", options.field_selector);
  query.add("resourceVersion", options.resource_version);
  query.add_flag("allowWatchBookmarks", options.bookmarks || options.send_initial_events);
  query.add_number("timeoutSeconds", std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count());
  if (options.send_initial_events) {
    query.add("sendInitialEvents", "true");
    // Required by the server, although no other value is possible.
    query.add("resourceVersionMatch", "NotOlderThan");
  }
  WireRequest wire;
  wire.method = "GET";
  wire.verb = "WATCH";
  wire.path = resource.path({options.ns, {}});
  wire.query = query.text();
  // A compressor would hold events back to fill its window.
  wire.gzip = false;
  return wire;
}

WireRequest wire_request(std::string path) {
  WireRequest wire;
  wire.method = "GET";
  wire.verb = "GET";
  const auto query_at = path.find('?');
  if (query_at != std::string::npos) {
    wire.query = path.substr(query_at);
    path.resize(query_at);
  }
  wire.path = std::move(path);
  return wire;
}

}  // namespace hubferry::kube::http
