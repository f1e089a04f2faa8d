#include "sim/apiserver/http/request_handler.hpp"

#include <algorithm>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <limits>

#include "sim/apiserver/http/formats.hpp"

namespace hubferry::sim {

namespace {

constexpr std::chrono::seconds longest_watch{24 * 3600};

HttpResponse answer(const StatusError& failure) {
  HttpResponse response;
  response.status = failure.code;
  response.body = json::serialize(failure.to_status());
  response.retry_after_seconds = failure.retry_after_seconds;
  return response;
}

HttpResponse answer(int status, const json::value& body) {
  HttpResponse response;
  response.status = status;
  response.body = json::serialize(body);
  return response;
}

bool wants_table(const HttpRequest& request) {
  return request.accept.find("as=Table") != std::string::npos;
}

std::string_view verb_of(const Route& route, const HttpRequest& request) {
  const auto& method = request.method;
  if (method == "GET" || method == "HEAD") {
    if (route.flag("watch")) return "watch";
    return route.key.name.empty() ? "list" : "get";
  }
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return request.content_type.starts_with("application/apply-patch") ? "apply" : "patch";
  if (method == "DELETE") return route.key.name.empty() ? "deletecollection" : "delete";
  return "";
}

/// A number in the query, clamped to [0, most]; 0 if absent. Errors: bad_request.
Outcome<std::int64_t> number(const Route& route, std::string_view name, std::int64_t most) {
  const auto& text = route.parameter(name);
  if (text.empty()) return Outcome<std::int64_t>{boost::system::in_place_value, 0};
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error != std::errc{})
    return errors::bad_request(std::string{name} + ": parsing \"" + text + "\": " +
                               (error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
  return Outcome<std::int64_t>{boost::system::in_place_value, std::clamp<std::int64_t>(value, 0, most)};
}

kube::Propagation propagation_from(std::string_view text) {
  if (text == "Foreground") return kube::Propagation::foreground;
  if (text == "Orphan") return kube::Propagation::orphan;
  if (text == "Background") return kube::Propagation::background;
  return kube::Propagation::server_default;
}

/// "kubectl" of "kubectl/v1.32 (linux/amd64)".
std::string manager_from(const HttpRequest& request, const Route& route) {
  if (const auto& named = route.parameter("fieldManager"); !named.empty()) return named;
  const auto end = request.user_agent.find('/');
  return request.user_agent.substr(0, end);
}

/// Reads the body of a write. Errors: bad_request.
Outcome<> read_body(kube::Request& into, const HttpRequest& request) {
  if (request.body.empty()) return {};
  if (request.content_type.starts_with(protobuf_type)) {
    auto decoded = decode_protobuf(request.body);
    if (!decoded) return decoded.error();
    into.body = std::move(*decoded);
  } else {
    // Schemas nest deeply; anything deeper than this is an attack.
    json::parse_options options;
    options.max_depth = 200;
    boost::system::error_code ec;
    into.body = json::parse(request.body, ec, {}, options);
    if (ec) return errors::bad_request("the body is not JSON: " + ec.message());
  }
  if (into.verb == kube::Verb::remove && into.body.is_object()) {
    const auto& options = into.body.get_object();
    into.propagation = propagation_from(kube::string_at(options, {"propagationPolicy"}));
    into.precondition_uid = kube::string_at(options, {"preconditions", "uid"});
    into.precondition_resource_version = kube::string_at(options, {"preconditions", "resourceVersion"});
    if (const auto* dry_run = options.if_contains("dryRun");
        dry_run != nullptr && dry_run->is_array() && !dry_run->get_array().empty())
      into.dry_run = true;
  }
  return {};
}

std::string outcome_text(const HttpResponse& response) {
  return "http " + std::to_string(response.status);
}

}  // namespace

std::string RequestHandler::encode_error(const StatusError& failure) {
  return R"({"type":"ERROR","object":)" + json::serialize(failure.to_status()) + "}\n";
}

std::optional<User> RequestHandler::authenticate(const HttpRequest& request) const {
  constexpr std::string_view scheme = "Bearer ";
  if (request.authorization.starts_with(scheme))
    return core_->authenticate(request.authorization.substr(scheme.size()));
  if (request.certified) return request.certified;
  return anonymous_;
}

async::Awaitable<HttpResponse> RequestHandler::handle(HttpRequest request) {
  auto route = parse_target(request.target);
  if (!route) co_return answer(errors::bad_request("the request target is invalid"));
  const auto verb = verb_of(*route, request);
  if (verb.empty()) co_return answer(errors::method_not_allowed());
  const Faults::Seen seen{verb == "deletecollection" ? "delete" : verb, route->plural, route->subresource,
                          route->key.ns, route->key.name};
  const auto decision = core_->faults.decide(seen);
  const auto latency = decision.latency + core_->options().latency.draw(core_->random);
  if (latency > async::Duration{0}) co_await core_->clock().sleep_for(latency);
  HttpResponse response;
  if (decision.reset_before) {
    response.reset = true;
    co_return response;
  }
  if (decision.compact) core_->compact();
  response = respond(*route, request, verb, decision);
  // Of kinds that do not exist a client could name any number.
  if (const auto* kind = core_->kinds().find(route->group, route->version, route->plural); kind != nullptr)
    counts_->add_request(verb, kind->resource, route->subresource, response.status);
  core_->run_background_on(co_await async::asio::this_coro::executor);
  response.reset = decision.reset_after;
  co_return response;
}

HttpResponse RequestHandler::respond(const Route& route, const HttpRequest& request, std::string_view verb,
                                     const Faults::Decision& decision) {
  try {
    if (decision.status != 0) return answer(errors::of_status(decision.status, decision.retry_after_seconds));
    const bool is_public = !route.is_resource && (route.path == "/readyz" || route.path == "/healthz" ||
                                                  route.path == "/livez" || route.path == "/version");
    if (is_public) return on_path(route, request);
    const auto user = authenticate(request);
    if (!user) return answer(errors::unauthorized());
    if (!route.is_resource) return on_path(route, request);
    auto response = on_resource(*user, route, request, verb, decision);
    core_->record(*user, verb, {route.group, route.version, route.plural, {}, true}, route.subresource, route.key,
                  outcome_text(response));
    return response;
  } catch (const std::exception& bug) {
    log().error("request failed with an internal error", {{"path", route.path}, {"error", bug.what()}});
    return answer(StatusError{500, "InternalError", std::string{"Internal error occurred: "} + bug.what(), {}, {}});
  }
}

HttpResponse RequestHandler::on_resource(const User& user, const Route& route, const HttpRequest& request,
                                         std::string_view verb, const Faults::Decision& decision) {
  const auto* kind = core_->kinds().find(route.group, route.version, route.plural);
  if (kind == nullptr) return answer(errors::no_such_resource());
  if (verb == "list") return list(user, *kind, route, request, decision);
  if (verb == "watch") return watch(user, *kind, route, request);
  if (verb == "deletecollection") return remove_all(user, *kind, route);

  kube::Request asked;
  asked.resource = kind->resource;
  asked.key = route.key;
  asked.subresource = route.subresource;
  asked.field_manager = manager_from(request, route);
  asked.force = route.flag("force");
  asked.dry_run = !route.parameter("dryRun").empty();
  asked.propagation = propagation_from(route.parameter("propagationPolicy"));
  int success = 200;
  if (verb == "create") {
    asked.verb = kube::Verb::create;
    success = 201;
  } else if (verb == "update") {
    asked.verb = kube::Verb::update;
  } else if (verb == "patch" || verb == "apply") {
    asked.verb = verb == "apply" ? kube::Verb::apply : kube::Verb::patch;
    if (request.content_type.starts_with("application/json-patch"))
      asked.patch_type = kube::PatchType::json;
    else if (request.content_type.starts_with("application/strategic-merge-patch"))
      asked.patch_type = kube::PatchType::strategic;
    if (verb == "apply" && route.parameter("fieldManager").empty())
      return answer(StatusError{
          422,
          "Invalid",
          "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
          {},
          {}});
  } else if (verb == "delete") {
    asked.verb = kube::Verb::remove;
  }
  if (verb != "get") {
    if (auto read = read_body(asked, request); !read) return answer(read.error());
    if (verb == "apply" && core_->kinds().find(asked.resource)->collection != nullptr &&
        !kind->collection->entries.contains(asked.key))
      success = 201;
  }
  auto outcome = core_->execute(user, std::move(asked));
  if (!outcome) return answer(outcome.error());
  if (verb == "get" && wants_table(request))
    return answer(200, make_table(*kind, {*outcome}, core_->clock().wall_now()));
  HttpResponse response;
  response.status = success;
  response.body = verb == "get" && kind->stored ? json::serialize(core_->with_managed_fields(*kind, *outcome))
                                                : json::serialize(outcome->json());
  return response;
}

HttpResponse RequestHandler::list(const User& user, const Kind& kind, const Route& route, const HttpRequest& request,
                                  const Faults::Decision& decision) {
  kube::ListOptions options;
  options.ns = route.key.ns;
  options.label_selector = route.parameter("labelSelector");
  options.field_selector = route.parameter("fieldSelector");
  const auto limit = number(route, "limit", std::numeric_limits<int>::max());
  if (!limit) return answer(limit.error());
  options.limit = static_cast<int>(*limit);
  options.continue_token = route.parameter("continue");
  if (const auto& version = route.parameter("resourceVersion"); !version.empty()) options.resource_version = version;
  options.resource_version_match = route.parameter("resourceVersionMatch");
  const auto page = core_->list(user, kind.resource, options, decision.stale_versions);
  if (!page) return answer(page.error());
  json::object metadata{{"resourceVersion", std::to_string(page->version)}};
  if (!page->continue_token.empty()) {
    metadata["continue"] = page->continue_token;
    metadata["remainingItemCount"] = page->remaining;
  }
  if (wants_table(request)) {
    auto table = make_table(kind, page->items, core_->clock().wall_now());
    table["metadata"] = std::move(metadata);
    return answer(200, table);
  }
  // Serialized item by item, so that a large list is not copied into one document first.
  HttpResponse response;
  response.body = R"({"kind":")" + kind.resource.kind + R"(List","apiVersion":")" + kind.resource.api_version() +
                  R"(","metadata":)" + json::serialize(metadata) + R"(,"items":[)";
  bool first = true;
  for (const auto& item : page->items) {
    if (!first) response.body += ',';
    first = false;
    response.body += json::serialize(item.json());
  }
  response.body += "]}";
  return response;
}

HttpResponse RequestHandler::watch(const User& user, const Kind& kind, const Route& route, const HttpRequest& request) {
  kube::WatchOptions options;
  options.ns = route.key.ns;
  options.label_selector = route.parameter("labelSelector");
  options.field_selector = route.parameter("fieldSelector");
  if (!route.key.name.empty())
    options.field_selector +=
        (options.field_selector.empty() ? "" : ",") + std::string{"metadata.name="} + route.key.name;
  options.resource_version = route.parameter("resourceVersion");
  options.bookmarks = route.flag("allowWatchBookmarks");
  const auto seconds = number(route, "timeoutSeconds", longest_watch.count());
  if (!seconds) return answer(seconds.error());
  options.timeout = std::chrono::seconds{*seconds};
  options.send_initial_events = route.flag("sendInitialEvents");
  auto opened = core_->watch(user, kind.resource, options);
  if (!opened) return answer(opened.error());
  HttpResponse response;
  response.watch = std::move(*opened);
  const bool table = wants_table(request);
  response.encode = [core = core_, kind = kind, table, counts = counts_,
                     &events = counts_->events_of(kind.resource)](const WatchItem& item) {
    static constexpr std::string_view names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};
    ++events;
    std::string line = R"({"type":")";
    line += names[static_cast<std::size_t>(item.type)];
    line += R"(","object":)";
    if (table && item.type != kube::WatchEventType::bookmark)
      line += json::serialize(make_table(kind, {item.object}, core->clock().wall_now()));
    else
      line += json::serialize(item.object.json());
    return line + "}\n";
  };
  return response;
}

HttpResponse RequestHandler::remove_all(const User& user, const Kind& kind, const Route& route) {
  kube::ListOptions options;
  options.ns = route.key.ns;
  options.label_selector = route.parameter("labelSelector");
  options.field_selector = route.parameter("fieldSelector");
  options.limit = 0;
  const auto page = core_->list(user, kind.resource, options);
  if (!page) return answer(page.error());
  for (const auto& item : page->items) {
    kube::Request request;
    request.verb = kube::Verb::remove;
    request.resource = kind.resource;
    request.key = item.key();
    request.propagation = propagation_from(route.parameter("propagationPolicy"));
    const auto removed = core_->execute(user, std::move(request));
    if (!removed && removed.error().code != 404) return answer(removed.error());
  }
  return answer(200, json::object{{"kind", "Status"},
                                  {"apiVersion", "v1"},
                                  {"metadata", json::object{}},
                                  {"status", "Success"},
                                  {"details", json::object{{"kind", kind.resource.plural}}}});
}

HttpResponse RequestHandler::on_path(const Route& route, const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") return answer(errors::method_not_allowed());
  if (route.path == "/openapi/v3") return answer(200, openapi_index(core_->kinds()));
  if (constexpr std::string_view documents = "/openapi/v3/"; route.path.starts_with(documents)) {
    const auto document = openapi_document(core_->kinds(), route.path.substr(documents.size()));
    return document ? answer(200, *document) : answer(errors::no_such_resource());
  }
  if (route.path == "/openapi/v2") {
    HttpResponse response;
    // An empty message is a valid document without definitions.
    if (request.accept.find("protobuf") != std::string::npos)
      response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    else
      response.body = R"({"swagger":"2.0","info":{"title":"hubferry sim","version":"v1"},"paths":{},"definitions":{}})";
    return response;
  }
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  if (route.path == "/metrics") {
    response.body = counts_->text();
    return response;
  }
  auto found = core_->path(route.path);
  if (!found) return answer(found.error());
  if (!found->is_string()) return answer(200, *found);
  response.body = found->get_string();
  return response;
}

}  // namespace hubferry::sim
