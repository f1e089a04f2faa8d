#include "hubagent/requests.hpp"

#include <algorithm>
#include <iterator>

#include "hubagent/shared_looks.hpp"
#include "hubferry/async/task_scope.hpp"

namespace hubferry::hubagent {

namespace {

/// No such object, or no such kind: the hub's Api has made sure of that.
bool is_absence(const kube::Error& error) {
  return error.kind == ErrorKind::not_found || error.kind == ErrorKind::unsupported;
}

/// A hub's Api that notes which objects of its lists cannot be read: of those it has the name only, and list_all()
/// leaves them out. Lifetime: that of one list_all().
class NotingApi final : public kube::Api {
 public:
  explicit NotingApi(kube::Api& inner) : inner_(inner) {}

  std::optional<Key> unreadable;

  Awaitable<kube::Result<Object>> call(kube::Request request) override { return inner_.call(std::move(request)); }
  Awaitable<kube::Result<kube::ListPage>> list(Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    auto page = co_await inner_.list(std::move(resource), std::move(options), decoder);
    if (page)
      for (const auto& item : page->items)
        if (item.object == nullptr) unreadable = item.key;
    co_return page;
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    return inner_.watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override { return inner_.get_path(std::move(path)); }
  [[nodiscard]] std::string_view name() const override { return inner_.name(); }

 private:
  kube::Api& inner_;
};

Error cannot(const std::string& what, const Hub& hub, const kube::Error& error) {
  return Error{error}.in_context("cannot " + what + " on hub " + hub.name());
}

}  // namespace

Awaitable<kube::Result<std::optional<Object>>> delete_as_read(const Hub& hub, Resource resource, Object object) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = std::move(resource);
  request.key = object.key();
  request.propagation = kube::Propagation::background;
  request.precondition_uid = object.uid();
  request.precondition_resource_version = object.resource_version();
  auto answer = co_await hub.api().call(std::move(request));
  if (!answer && answer.error().kind == ErrorKind::not_found) co_return std::optional<Object>{};
  if (!answer) co_return answer.error();
  const bool lingers = answer->uid() == object.uid() && answer->is_being_deleted();
  co_return lingers ? std::optional<Object>{*answer} : std::nullopt;
}

std::string described(const Resource& resource, const Key& key) {
  return resource.kind + " " + kube::to_string(key);
}

Error changed_meanwhile(const Hub& hub, const Resource& resource, const Key& key) {
  return {FailureReason::cluster_conflict,
          described(resource, key) + " on hub " + hub.name() + " was changed meanwhile, so it was not deleted"};
}

RetryBudget::RetryBudget(const Hub& hub)
    : clock_(hub.env().clock),
      busy_timeout_(hub.options().busy_timeout),
      unreachable_timeout_(hub.options().unreachable_timeout),
      backoff_({}, hub.env().clock, hub.env().random) {}

Awaitable<bool> RetryBudget::wait_before_retry(kube::Error error) {
  if (!kube::is_transient(error.kind)) co_return false;
  const auto now = clock_.now();
  const bool silent = error.kind == ErrorKind::unreachable;
  if (!first_failure_) first_failure_ = now;
  if (!silent) unreachable_since_.reset();
  if (silent && !unreachable_since_) unreachable_since_ = now;
  const auto end = silent ? *unreachable_since_ + unreachable_timeout_ : *first_failure_ + busy_timeout_;
  const auto delay = std::max(backoff_.next(), error.retry_after.value_or(async::Duration{0}));
  if (now + delay > end) co_return false;
  co_await clock_.sleep_for(delay);
  co_return true;
}

Awaitable<Result<std::optional<Object>>> get_if_exists(const Hub& hub, Resource resource, Key key) {
  if (!key.ns.empty() && SharedLooks::is_shared(resource)) {
    if (const auto all = co_await hub.looks().all_on_hub(resource)) {
      const auto one = std::ranges::find(*all, key, &Object::key);
      co_return one == all->end() ? std::nullopt : std::optional<Object>{*one};
    }
  }
  auto attempt = [&] { return hub.api().get(resource, key); };
  auto found = co_await with_retry(hub, attempt);
  if (found) co_return std::optional<Object>{*found};
  if (is_absence(found.error())) co_return std::optional<Object>{};
  co_return cannot("read " + described(resource, key), hub, found.error());
}

namespace {

/// Those of the namespace, by a list of the whole hub; absent: there are many.
Awaitable<std::optional<std::vector<Object>>> look_at_hub(const Hub& hub, Resource resource, std::string ns,
                                                          std::string label_selector) {
  const auto all = co_await hub.looks().all_on_hub(std::move(resource), std::move(label_selector));
  if (all == nullptr) co_return std::nullopt;
  std::vector<Object> in_namespace;
  std::ranges::copy_if(*all, std::back_inserter(in_namespace), [&](const Object& one) { return one.ns() == ns; });
  co_return in_namespace;
}

}  // namespace

Awaitable<Result<std::vector<Object>>> list_few(const Hub& hub, Resource resource, std::string ns,
                                                std::string label_selector) {
  if (auto found = co_await look_at_hub(hub, resource, ns, label_selector)) co_return std::move(*found);
  co_return co_await list(hub, std::move(resource), std::move(ns), std::move(label_selector));
}

Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns,
                                            std::string label_selector) {
  if (!ns.empty() && label_selector.empty() && SharedLooks::is_shared(resource))
    if (auto found = co_await look_at_hub(hub, resource, ns, {})) co_return std::move(*found);
  kube::ListOptions options;
  options.ns = ns;
  options.label_selector = std::move(label_selector);
  NotingApi api{hub.api()};
  auto attempt = [&] {
    api.unreadable.reset();
    return api.list_all(resource, options);
  };
  auto found = co_await with_retry(hub, attempt);
  // Taken for absent, it would be neither copied nor made harmless.
  if (found && api.unreadable)
    co_return Error{FailureReason::error, described(resource, *api.unreadable) + " cannot be read on hub " +
                                              hub.name() + ": it is nested too deep, or has a number out of range"};
  if (found) co_return std::move(*found);
  if (is_absence(found.error())) co_return std::vector<Object>{};
  co_return cannot("list " + resource.display_name() + (ns.empty() ? "" : " in namespace " + ns), hub, found.error());
}

Awaitable<std::vector<Result<std::vector<Object>>>> list_each(const Hub& hub, std::vector<Resource> resources,
                                                              std::string ns) {
  std::vector<Result<std::vector<Object>>> lists(resources.size(), std::vector<Object>{});
  auto list_one = [&](std::size_t index) -> Awaitable<> {
    auto listed = co_await list(hub, resources[index], ns);
    lists[index] = std::move(listed);
  };
  auto list_all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t index = 0; index < resources.size(); ++index) scope.spawn(list_one(index));
    co_return;
  };
  co_await async::with_scope(list_all);
  co_return lists;
}

Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Key key, kube::Mutation mutate) {
  auto attempt = [&] { return kube::edit(hub.api(), resource, key, mutate); };
  auto edited = co_await with_retry(hub, attempt);
  if (!edited) co_return cannot("change " + described(resource, key), hub, edited.error());
  co_return *edited;
}

Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Object known, kube::Mutation mutate) {
  const Key key = known.key();
  auto edited = co_await kube::edit(hub.api(), resource, std::move(known), mutate, kube::EditOptions{});
  if (edited) co_return *edited;
  if (!kube::is_transient(edited.error().kind))
    co_return cannot("change " + described(resource, key), hub, edited.error());
  co_return co_await edit(hub, std::move(resource), key, std::move(mutate));
}

Awaitable<Result<>> edit_if_exists(const Hub& hub, Resource resource, Object known, kube::Mutation mutate) {
  auto edited = co_await edit(hub, std::move(resource), std::move(known), std::move(mutate));
  if (edited || edited.error().is(ErrorKind::not_found)) co_return Result<>{};
  co_return edited.error();
}

Awaitable<Result<kube::Written>> create_or_patch(const Hub& hub, Resource resource, Key key, kube::Mutation mutate) {
  auto attempt = [&] { return kube::create_or_patch(hub.api(), resource, key, mutate); };
  auto written = co_await with_retry(hub, attempt);
  if (!written) co_return cannot("write " + described(resource, key), hub, written.error());
  co_return std::move(*written);
}

Awaitable<Result<std::optional<Object>>> delete_object(const Hub& hub, Resource resource, Object object) {
  const std::string owner{object.label(migration_label)};
  StillDeletable has_owner = [owner](const Object& current) { return current.label(migration_label) == owner; };
  return delete_object(hub, std::move(resource), std::move(object), std::move(has_owner));
}

Awaitable<Result<std::optional<Object>>> delete_object(const Hub& hub, Resource resource, Object object,
                                                       StillDeletable still_deletable) {
  Prepare judge = [&](Object current) -> Awaitable<Result<std::optional<Object>>> {
    if (!still_deletable(current)) co_return changed_meanwhile(hub, resource, current.key());
    co_return std::optional<Object>{std::move(current)};
  };
  co_return co_await delete_prepared(hub, resource, std::move(object), judge);
}

Awaitable<Result<std::optional<Object>>> delete_prepared(const Hub& hub, Resource resource, Object object,
                                                         Prepare prepare) {
  RetryBudget budget{hub};
  while (true) {
    auto prepared = co_await prepare(object);
    if (!prepared) co_return prepared.error();
    if (!*prepared) co_return std::optional<Object>{};
    auto deleted = co_await delete_as_read(hub, resource, **prepared);
    if (deleted) co_return std::move(*deleted);
    const bool again = co_await budget.wait_before_retry(deleted.error());
    if (!again) co_return cannot("delete " + described(resource, object.key()), hub, deleted.error());
    // Either the uid differs, so the object is gone; or somebody has written to it since it was read.
    auto current = co_await hub.api().get(resource, object.key());
    const bool gone = current ? current->uid() != object.uid() : current.error().kind == ErrorKind::not_found;
    if (gone) co_return std::optional<Object>{};
    if (current) object = std::move(*current);
  }
}

Awaitable<Result<bool>> serves(const Hub& hub, Resource resource) {
  auto attempt = [&] { return hub.api().serves(resource); };
  auto served = co_await with_retry(hub, attempt);
  if (!served) co_return cannot("look up whether " + resource.kind + " is served", hub, served.error());
  co_return *served;
}

}  // namespace hubferry::hubagent
