#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/kube/api.hpp"

namespace hubferry::kube {

/// Brings an object into the wanted state; true if that changed anything.
/// Called once for each state that was read, so: pure, and without effect when the object is as wanted already.
using Mutation = std::function<bool(json::object&)>;

struct EditOptions {
  std::string subresource;
  std::string field_manager;  // empty: the Api's default
  unsigned attempts = 5;
  bool create = true;    // of create_or_patch(): else a missing object is the error `not_found`
  TimePoint deadline{};  // zero: the Api's default
};

/// Reads, mutates, and writes with the resourceVersion that was read; nothing is written when nothing changed.
/// After a conflict, and after a write without an answer, it reads and decides again, for a bounded number of attempts.
/// After an ambiguous response it reads again too, but leaves another write to the caller. So it does after a refusal
/// as invalid, and decides again if the object has changed since. Errors: those of the last read or write; `conflict`
/// or `ambiguous` when the attempts were used up.
Awaitable<Result<Object>> edit(Api& api, Resource resource, Key key, Mutation mutate, EditOptions options);
Awaitable<Result<Object>> edit(Api& api, Resource resource, Key key, Mutation mutate);
/// The same, beginning with a state that the caller holds (from a cache): saves a read when that is current.
Awaitable<Result<Object>> edit(Api& api, Resource resource, Object known, Mutation mutate, EditOptions options);

enum class WriteOutcome { unchanged, created, changed };

struct Written {
  Object object;
  WriteOutcome outcome = WriteOutcome::unchanged;
};

/// Creates the object if it is missing, else patches what differs. `mutate` fills in the wanted fields: for a create it
/// starts from metadata with the key's name and namespace. The patch carries the resourceVersion that was read.
Awaitable<Result<Written>> create_or_patch(Api& api, Resource resource, Key key, Mutation mutate);
Awaitable<Result<Written>> create_or_patch(Api& api, Resource resource, Key key, Mutation mutate, EditOptions options);

/// True when each field of `wanted` is in `actual` with that value. Objects may have more fields in `actual`; arrays
/// must be of the same length.
bool contains_fields(const json::value& actual, const json::value& wanted);

/// The JSON merge patch (RFC 7386) that turns `from` into `to`; nullopt when they are equal.
std::optional<json::object> merge_patch_between(const json::object& from, const json::object& to);

bool has_finalizer(const Object& object, std::string_view finalizer);
/// Mutations, to be combined with others. Both return whether the object changed.
bool put_finalizer(json::object& object, std::string_view finalizer);
bool drop_finalizer(json::object& object, std::string_view finalizer);

/// Does nothing on an object that is being deleted: the server would refuse it. Look at the answer.
Awaitable<Result<Object>> add_finalizer(Api& api, Resource resource, Key key, std::string finalizer);
/// An object that is gone already is a success, with an empty object.
Awaitable<Result<Object>> remove_finalizer(Api& api, Resource resource, Key key, std::string finalizer);

struct Ownership {
  bool controller = true;
  bool block_owner_deletion = true;
};

/// Makes `owner` an owner of `object`; true if that changed it. Errors: `invalid` for an owner that the garbage
/// collector would not accept (another namespace, no uid), `conflict` when another controller owns it.
Result<bool> set_owner(json::object& object, const Resource& owner_resource, const Object& owner, Ownership how = {});
bool is_owned_by(const Object& object, std::string_view owner_uid);

}  // namespace hubferry::kube
