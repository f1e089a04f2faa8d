#include "hubferry/phase/kube_store.hpp"

#include <algorithm>

#include "hubferry/kube/resource_version.hpp"

namespace hubferry::phase {

namespace {

// Nobody reads the 32 KiB that metav1.Condition allows.
constexpr std::size_t longest_condition_message = 2048;

const json::object& status_of(const kube::Object& object) {
  static const json::object nothing;
  const auto* status = object.find({"status"});
  return status != nullptr && status->is_object() ? status->get_object() : nothing;
}

std::optional<kube::LeaderEpoch> leader_in(const json::object& status) {
  const auto* leader = kube::find(status, {"state", leader_field});
  if (leader == nullptr || !leader->is_object()) return std::nullopt;
  const auto* number = leader->get_object().if_contains("epoch");
  if (number == nullptr || !number->is_int64()) return std::nullopt;
  return kube::LeaderEpoch{std::string{kube::string_at(leader->get_object(), {"identity"})}, number->get_int64()};
}

void put_leader(json::object& status, const kube::LeaderEpoch& leader) {
  json::object entry{{"epoch", leader.number}, {"identity", leader.identity}};
  kube::object_in(status, "state")[leader_field] = std::move(entry);
}

}  // namespace

json::object merge_diff(const json::object& from, const json::object& to) {
  json::object patch;
  for (const auto& [name, value] : from)
    if (!to.contains(name)) patch.emplace(name, nullptr);
  for (const auto& [name, value] : to) {
    const auto* before = from.if_contains(name);
    if (before != nullptr && *before == value) continue;
    if (before != nullptr && before->is_object() && value.is_object()) {
      patch.emplace(name, merge_diff(before->get_object(), value.get_object()));
    } else {
      patch.emplace(name, value);
    }
  }
  return patch;
}

void merge_apply(json::object& target, const json::object& patch) {
  for (const auto& [name, value] : patch) {
    if (value.is_null()) {
      target.erase(name);
    } else if (value.is_object()) {
      merge_apply(kube::object_in(target, name), value.get_object());
    } else {
      target[name] = value;
    }
  }
}

void carry_status(json::object& fresh, const json::object& base, const json::object& mine) {
  auto changes = merge_diff(base, mine);
  for (const char* decided_anew : {"phase", "state"}) changes.erase(decided_anew);
  const auto* conditions = changes.if_contains("conditions");
  if (conditions != nullptr && conditions->is_array()) {
    const json::array all = conditions->get_array();
    changes.erase("conditions");
    for (const auto& condition : all) {
      if (!condition.is_object()) continue;
      const auto type = kube::string_at(condition.get_object(), {"type"});
      const auto* before = kube::find_condition_in_status(base, type);
      if (before != nullptr && *before == condition.get_object()) continue;
      auto& present = kube::array_in(fresh, "conditions");
      const auto same = [&](const json::value& one) {
        return one.is_object() && kube::string_at(one.get_object(), {"type"}) == type;
      };
      const auto found = std::find_if(present.begin(), present.end(), same);
      if (found == present.end()) {
        present.push_back(condition);
      } else {
        *found = condition;
      }
    }
  }
  merge_apply(fresh, changes);
  const auto* known = base.if_contains("conditions");
  if (known == nullptr || !known->is_array()) return;
  for (const auto& condition : known->get_array()) {
    const auto type = condition.is_object() ? kube::string_at(condition.get_object(), {"type"}) : std::string_view{};
    if (kube::find_condition_in_status(mine, type) == nullptr) kube::remove_condition(fresh, type);
  }
}

KubeResource::KubeResource(kube::Object read) : object(std::move(read)), status(status_of(object)) {}

Phase KubeResource::phase() const {
  return Phase{kube::string_at(status, {"phase"})};
}

State KubeResource::state(const Phase& phase) const {
  const auto* found = kube::find(status, {"state", phase});
  return found == nullptr ? State{} : state_from_json(*found);
}

void KubeResource::set_state(const Phase& phase, const State& state) {
  auto& states = kube::object_in(status, "state");
  if (state == State{}) {
    states.erase(phase);
  } else {
    states[phase] = to_json(state);
  }
}

void KubeResource::set_condition(std::string_view type, kube::ConditionStatus condition_status, std::string_view reason,
                                 std::string_view message, async::WallTime now) {
  const kube::Condition condition{std::string{type}, condition_status, std::string{reason},
                                  shortened(message, longest_condition_message), object.generation()};
  kube::set_condition(status, condition, now);
}

bool KubeResource::is_modified() const {
  return status != status_of(object);
}

std::optional<kube::LeaderEpoch> KubeResource::leader() const {
  return leader_in(status_of(object));
}

Awaitable<kube::Result<kube::Object>> edit_metadata(kube::Api& api, kube::Resource kind, KubeResource& resource,
                                                    kube::Mutation mutate) {
  constexpr int attempts = 5;
  kube::Error last;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    json::object changed = resource.object.json();
    if (!mutate(changed)) co_return resource.object;
    auto written = co_await api.update(kind, std::move(changed));
    if (written) {
      resource.object = *written;
      co_return written;
    }
    last = written.error();
    if (last.kind != kube::ErrorKind::conflict && last.kind != kube::ErrorKind::ambiguous) co_return last;
    auto current = co_await api.get(kind, resource.object.key());
    if (!current) co_return current.error();
    if (current->uid() != resource.object.uid())
      co_return kube::Error{kube::ErrorKind::not_found, 0, {}, "there is another object of that name", std::nullopt};
    if (status_of(*current) != status_of(resource.object))
      co_return kube::Error{kube::ErrorKind::conflict, 0, {}, "somebody else has written the status", std::nullopt};
    resource.object = *current;
  }
  co_return last;
}

KubeStore::KubeStore(kube::Api& api, kube::Resource resource, KubeStoreOptions options)
    : api_(api), resource_(std::move(resource)), options_(std::move(options)) {}

std::optional<KubeResource> KubeStore::accept(kube::Object object) const {
  if (options_.skip_deleted && object.is_being_deleted()) return std::nullopt;
  return KubeResource{std::move(object)};
}

Awaitable<Result<std::optional<KubeResource>>> KubeStore::fetch(Key key) {
  if (!options_.cached) co_return co_await fetch_fresh(std::move(key));
  auto cached = options_.cached(key);
  const auto known = newest_.find(key);
  if (known == newest_.end()) {
    if (!cached) co_return std::optional<KubeResource>{};
    co_return accept(std::move(*cached));
  }
  // The cache has no such object, or another one of that name: only the server knows.
  if (!cached || cached->uid() != known->second.uid()) {
    newest_.erase(known);
    co_return co_await fetch_fresh(std::move(key));
  }
  if (kube::is_at_least(cached->resource_version(), known->second.resource_version())) {
    newest_.erase(known);
    co_return accept(std::move(*cached));
  }
  co_return accept(known->second);
}

void KubeStore::remember(const Key& key, const kube::Object& object) {
  if (!options_.cached) return;
  const auto is_as_new = [&](const kube::Object& known) {
    return known.uid() == object.uid() && kube::is_at_least(known.resource_version(), object.resource_version());
  };
  const auto known = newest_.find(key);
  if (known != newest_.end() && is_as_new(known->second)) return;
  const auto cached = options_.cached(key);
  if (cached && is_as_new(*cached)) {
    newest_.erase(key);
  } else {
    newest_.insert_or_assign(key, object);
  }
}

Awaitable<Result<std::optional<KubeResource>>> KubeStore::fetch_fresh(Key key) {
  auto read = co_await api_.get(resource_, key);
  if (read) {
    if (options_.on_read) options_.on_read(key, read->resource_version());
    remember(key, *read);
    co_return accept(std::move(*read));
  }
  if (read.error().kind == kube::ErrorKind::not_found) co_return std::optional<KubeResource>{};
  co_return Error{read.error()};
}

/// True if a status that was last written in that term may be replaced.
Awaitable<bool> KubeStore::outranks(std::optional<kube::LeaderEpoch> recorded) {
  if (!recorded) co_return true;
  const auto ours = options_.fence->epoch();
  if (recorded->number < ours.number || *recorded == ours) co_return true;
  co_return co_await options_.fence->outrank(recorded->number);
}

bool KubeStore::is_claimed(const KubeResource& resource) const {
  if (options_.fence == nullptr) return true;
  const auto recorded = resource.leader();
  // Our own number may have been raised since.
  return !recorded || recorded->identity == options_.fence->epoch().identity;
}

Awaitable<Written> KubeStore::claim(KubeResource& resource) {
  if (options_.fence == nullptr || resource.leader() == options_.fence->epoch()) co_return Written::ok();
  // Nobody has worked on it: the first write of its status, which is conditional, will claim it.
  if (resource.object.string_at({"status", "phase"}).empty()) co_return Written::ok();
  co_return co_await persist(resource);
}

Awaitable<Written> KubeStore::persist(KubeResource& resource) {
  if (options_.fence != nullptr) {
    const bool allowed = co_await outranks(resource.leader());
    if (!allowed) co_return Written::failed(Error::network("another leader works on this resource"));
    put_leader(resource.status, options_.fence->epoch());
  }
  auto changes = merge_diff(status_of(resource.object), resource.status);
  if (changes.empty()) co_return Written::ok();
  json::object patch;
  patch["status"] = std::move(changes);
  auto written = co_await send(resource, std::move(patch), "status");
  if (written.outcome == Written::Outcome::written) resource.status = status_of(resource.object);
  co_return written;
}

Awaitable<Written> KubeStore::patch(KubeResource& resource, json::object changes) {
  const json::object before = status_of(resource.object);
  auto written = co_await send(resource, std::move(changes), {});
  if (written.outcome != Written::Outcome::written) co_return written;
  json::object fresh = status_of(resource.object);
  carry_status(fresh, before, resource.status);
  resource.status = std::move(fresh);
  co_return written;
}

Awaitable<Written> KubeStore::send(KubeResource& resource, json::object patch, std::string subresource) {
  auto& metadata = kube::object_in(patch, "metadata");
  metadata["resourceVersion"] = resource.object.resource_version();
  metadata["uid"] = resource.object.uid();
  const Key key = resource.object.key();
  auto answer = co_await api_.merge_patch(resource_, key, std::move(patch), std::move(subresource));
  if (answer) {
    resource.object = std::move(*answer);
    if (options_.on_written) options_.on_written(key, resource.object.resource_version());
    remember(key, resource.object);
    co_return Written::ok();
  }
  switch (answer.error().kind) {
    case kube::ErrorKind::conflict:
      co_return Written::conflict();
    case kube::ErrorKind::ambiguous:
      co_return Written::ambiguous(Error{answer.error()});
    case kube::ErrorKind::not_found:
      co_return Written::gone();
    default:
      co_return Written::failed(Error{answer.error()});
  }
}

}  // namespace hubferry::phase
