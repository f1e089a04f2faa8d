#include "hubferry/kube/edit.hpp"

#include <algorithm>

namespace hubferry::kube {

namespace {

Request request_for(Verb verb, const Resource& resource, Key key, const EditOptions& options) {
  Request request;
  request.verb = verb;
  request.resource = resource;
  request.key = std::move(key);
  request.field_manager = options.field_manager;
  request.deadline = options.deadline;
  return request;
}

/// After these the object must be read before anything else can be decided.
bool wants_another_look(const Error& error) {
  return error.kind == ErrorKind::conflict || error.kind == ErrorKind::ambiguous;
}

/// The server is there and in trouble: what it did with our write can be seen, but another one would only add to it.
bool is_refused_by_trouble(const Error& error) {
  return error.kind == ErrorKind::ambiguous && error.status != 0;
}

Awaitable<Result<Object>> edit_loop(Api& api, Resource resource, Key key, std::optional<Object> known, Mutation mutate,
                                    EditOptions options) {
  Error last{ErrorKind::conflict, 0, {}, "no attempt was made", std::nullopt};
  for (unsigned attempt = 0; attempt < options.attempts; ++attempt) {
    if (!known) {
      auto request = request_for(Verb::get, resource, key, options);
      auto current = co_await api.call(std::move(request));
      if (!current) co_return current.error();
      known = *current;
    }
    json::object changed = known->json();
    if (!mutate(changed)) co_return *known;
    if (is_refused_by_trouble(last)) co_return last;
    auto request = request_for(Verb::update, resource, key, options);
    request.subresource = options.subresource;
    request.body = with_type(resource, std::move(changed));
    auto written = co_await api.call(std::move(request));
    if (written) co_return written;
    last = written.error();
    if (last.kind == ErrorKind::invalid) {
      // A webhook judges before the API server compares versions: what it refuses may be what others changed since.
      auto reread = request_for(Verb::get, resource, key, options);
      auto current = co_await api.call(std::move(reread));
      if (!current || current->resource_version() == known->resource_version()) co_return last;
      known = *current;
      continue;
    }
    if (!wants_another_look(last)) co_return last;
    known.reset();
  }
  co_return last;
}

}  // namespace

Awaitable<Result<Object>> edit(Api& api, Resource resource, Key key, Mutation mutate, EditOptions options) {
  return edit_loop(api, std::move(resource), std::move(key), std::nullopt, std::move(mutate), std::move(options));
}

Awaitable<Result<Object>> edit(Api& api, Resource resource, Key key, Mutation mutate) {
  return edit(api, std::move(resource), std::move(key), std::move(mutate), EditOptions{});
}

Awaitable<Result<Object>> edit(Api& api, Resource resource, Object known, Mutation mutate, EditOptions options) {
  Key key = known.key();
  return edit_loop(api, std::move(resource), std::move(key), std::move(known), std::move(mutate), std::move(options));
}

Awaitable<Result<Written>> create_or_patch(Api& api, Resource resource, Key key, Mutation mutate) {
  return create_or_patch(api, std::move(resource), std::move(key), std::move(mutate), EditOptions{});
}

Awaitable<Result<Written>> create_or_patch(Api& api, Resource resource, Key key, Mutation mutate, EditOptions options) {
  Error last{ErrorKind::conflict, 0, {}, "no attempt was made", std::nullopt};
  for (unsigned attempt = 0; attempt < options.attempts; ++attempt) {
    auto read = request_for(Verb::get, resource, key, options);
    auto current = co_await api.call(std::move(read));
    if (!current && (current.error().kind != ErrorKind::not_found || !options.create)) co_return current.error();

    Request write;
    if (current) {
      json::object changed = current->json();
      auto patch = mutate(changed) ? merge_patch_between(current->json(), changed) : std::nullopt;
      if (!patch) co_return Written{*current, WriteOutcome::unchanged};
      if (is_refused_by_trouble(last)) co_return last;
      object_in(*patch, "metadata")["resourceVersion"] = current->resource_version();
      write = request_for(Verb::patch, resource, key, options);
      write.subresource = options.subresource;
      write.body = std::move(*patch);
    } else {
      if (is_refused_by_trouble(last)) co_return last;
      json::object metadata{{"name", key.name}};
      if (!key.ns.empty()) metadata["namespace"] = key.ns;
      json::object fresh{{"metadata", std::move(metadata)}};
      mutate(fresh);
      write = request_for(Verb::create, resource, Key{key.ns, {}}, options);
      write.body = with_type(resource, std::move(fresh));
    }
    auto written = co_await api.call(std::move(write));
    if (written) co_return Written{*written, current ? WriteOutcome::changed : WriteOutcome::created};
    last = written.error();
    // Created or deleted concurrently between our two requests.
    const bool raced = last.kind == (current ? ErrorKind::not_found : ErrorKind::already_exists);
    if (!raced && !wants_another_look(last)) co_return last;
  }
  co_return last;
}

bool contains_fields(const json::value& actual, const json::value& wanted) {
  if (const auto* fields = wanted.if_object()) {
    const auto* present = actual.if_object();
    return present != nullptr && std::ranges::all_of(*fields, [&](const auto& field) {
             const auto* value = present->if_contains(field.key());
             return value != nullptr && contains_fields(*value, field.value());
           });
  }
  if (const auto* elements = wanted.if_array()) {
    const auto* present = actual.if_array();
    return present != nullptr && std::ranges::equal(*present, *elements, contains_fields);
  }
  return actual == wanted;
}

std::optional<json::object> merge_patch_between(const json::object& from, const json::object& to) {
  json::object patch;
  for (const auto& field : from)
    if (!to.contains(field.key())) patch[field.key()] = nullptr;
  for (const auto& field : to) {
    const auto* before = from.if_contains(field.key());
    if (before != nullptr && *before == field.value()) continue;
    if (before != nullptr && before->is_object() && field.value().is_object()) {
      if (auto inner = merge_patch_between(before->get_object(), field.value().get_object()))
        patch[field.key()] = std::move(*inner);
    } else {
      patch[field.key()] = field.value();
    }
  }
  if (patch.empty()) return std::nullopt;
  return patch;
}

}  // namespace hubferry::kube
