#include "hubferry/kube/api.hpp"

#include <algorithm>

#include "hubferry/kube/cache_core.hpp"
#include "hubferry/kube/names.hpp"

namespace hubferry::kube {

namespace {

constexpr CacheLimits list_limits;

Key key_of(const json::object& object) {
  return {std::string{string_at(object, {"metadata", "namespace"})},
          std::string{string_at(object, {"metadata", "name"})}};
}

Request request_for(Verb verb, const Resource& resource, Key key, std::string subresource = {}) {
  Request request;
  request.verb = verb;
  request.resource = resource;
  request.key = std::move(key);
  request.subresource = std::move(subresource);
  return request;
}

}  // namespace

bool names_one_object(const Request& request) {
  const bool good_namespace = !request.resource.namespaced || request.key.ns.empty() || is_path_segment(request.key.ns);
  // A create is about the collection; its body holds the name.
  const bool on_collection = request.verb == Verb::create && request.subresource.empty();
  return good_namespace && (on_collection || is_path_segment(request.key.name));
}

Error unnamed(const Request& request) {
  return {ErrorKind::invalid,
          0,
          {},
          "not sent: \"" + to_string(request.key) + "\" does not name one object of " + request.resource.display_name(),
          std::nullopt};
}

json::object with_type(const Resource& resource, json::object object) {
  if (!object.contains("apiVersion")) object["apiVersion"] = resource.api_version();
  if (!object.contains("kind")) object["kind"] = resource.kind;
  return object;
}

Awaitable<Result<Object>> Api::get(const Resource& resource, Key key) {
  return call(request_for(Verb::get, resource, std::move(key)));
}

Awaitable<Result<Object>> Api::create(const Resource& resource, json::object object) {
  Request request = request_for(Verb::create, resource, {key_of(object).ns, {}});
  request.body = with_type(resource, std::move(object));
  return call(std::move(request));
}

Awaitable<Result<Object>> Api::update(const Resource& resource, json::object object, std::string subresource) {
  Request request = request_for(Verb::update, resource, key_of(object), std::move(subresource));
  request.body = with_type(resource, std::move(object));
  return call(std::move(request));
}

Awaitable<Result<Object>> Api::merge_patch(const Resource& resource, Key key, json::object patch,
                                           std::string subresource) {
  Request request = request_for(Verb::patch, resource, std::move(key), std::move(subresource));
  request.body = std::move(patch);
  return call(std::move(request));
}

Awaitable<Result<Object>> Api::json_patch(const Resource& resource, Key key, json::array patch,
                                          std::string subresource) {
  Request request = request_for(Verb::patch, resource, std::move(key), std::move(subresource));
  request.patch_type = PatchType::json;
  request.body = std::move(patch);
  return call(std::move(request));
}

Awaitable<Result<Object>> Api::apply(const Resource& resource, json::object object, bool force,
                                     std::string subresource) {
  Request request = request_for(Verb::apply, resource, key_of(object), std::move(subresource));
  request.body = with_type(resource, std::move(object));
  request.force = force;
  return call(std::move(request));
}

Awaitable<Result<Object>> Api::remove(const Resource& resource, Key key, Propagation propagation) {
  Request request = request_for(Verb::remove, resource, std::move(key));
  request.propagation = propagation;
  return call(std::move(request));
}

Awaitable<Result<std::vector<Object>>> Api::list_all(const Resource& resource, ListOptions options) {
  std::vector<Object> all;
  std::size_t bytes = 0;
  bool paged = options.limit > 0;
  while (true) {
    auto page = co_await list(resource, options, object_decoder());
    if (!page && page.error().kind == ErrorKind::gone && !options.continue_token.empty()) {
      // The snapshot expired between two pages; one unpaged list cannot be torn.
      all.clear();
      bytes = 0;
      options.continue_token.clear();
      options.limit = 0;
      paged = false;
      continue;
    }
    if (!page) co_return page.error();
    // An object that cannot be decoded has a key only.
    for (const auto& item : page->items) {
      bytes += item.bytes;
      if (item.object) all.push_back(*static_cast<const Object*>(item.object.get()));
    }
    if (!paged || page->continue_token.empty()) co_return all;
    // Else it would grow for ever.
    if (page->continue_token == options.continue_token || all.size() > list_limits.objects || bytes > list_limits.bytes)
      co_return Error{
          ErrorKind::bad_response, 0, {}, "the list of " + resource.display_name() + " has no end", std::nullopt};
    options.continue_token = page->continue_token;
    // A continued list keeps the first page's version; naming one again is an error.
    options.resource_version.reset();
    options.resource_version_match.clear();
  }
}

Awaitable<Result<bool>> Api::serves(const Resource& resource) {
  const std::string group_version = resource.api_version();
  const auto known = served_.find(group_version);
  if (known != served_.end() && std::ranges::find(known->second, resource.plural) != known->second.end())
    co_return true;

  auto answer = co_await get_path((resource.group.empty() ? "/api/" : "/apis/") + group_version);
  if (!answer && answer.error().kind == ErrorKind::not_found) co_return false;
  if (!answer) co_return answer.error();
  std::vector<std::string> plurals;
  if (const auto* listed = find(*answer, {"resources"}); listed != nullptr && listed->is_array())
    for (const auto& entry : listed->get_array())
      if (entry.is_object()) plurals.emplace_back(string_at(entry.get_object(), {"name"}));
  const bool served = std::ranges::find(plurals, resource.plural) != plurals.end();
  served_[group_version] = std::move(plurals);
  co_return served;
}

Awaitable<Result<bool>> Api::may(std::string verb, const Resource& resource, Key key, std::string subresource) {
  json::object attributes{{"verb", verb}, {"group", resource.group}, {"resource", resource.plural}};
  if (!key.ns.empty()) attributes["namespace"] = key.ns;
  if (!key.name.empty()) attributes["name"] = key.name;
  if (!subresource.empty()) attributes["subresource"] = subresource;
  json::object review{{"spec", json::object{{"resourceAttributes", std::move(attributes)}}}};
  auto answer = co_await create(resources::self_subject_access_reviews, std::move(review));
  if (!answer) co_return answer.error();
  const auto* allowed = answer->find({"status", "allowed"});
  co_return allowed != nullptr && allowed->is_bool() && allowed->get_bool();
}

}  // namespace hubferry::kube
