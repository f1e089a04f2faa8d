#include "hubagent/requests.hpp"

namespace hubferry::hubagent {

namespace {

/// No such object, or no such kind.
bool is_absence(const kube::Error& error) {
  return error.kind == ErrorKind::not_found || error.kind == ErrorKind::unsupported;
}

Error cannot(const std::string& what, const Hub& hub, const kube::Error& error) {
  return Error{error}.in_context("cannot " + what + " on hub " + hub.name());
}

Awaitable<kube::Result<std::optional<Object>>> delete_once(const Hub& hub, Resource resource, Object object) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = resource;
  request.key = object.key();
  request.propagation = kube::Propagation::background;
  request.precondition_uid = object.uid();
  auto answer = co_await hub.api().call(std::move(request));
  if (!answer && answer.error().kind == ErrorKind::not_found) co_return std::optional<Object>{};
  if (!answer && answer.error().kind == ErrorKind::conflict) {
    // Either the uid differs, so ours is gone; or somebody wrote to the object at the same moment.
    auto current = co_await hub.api().get(resource, object.key());
    const bool gone = current ? current->uid() != object.uid() : current.error().kind == ErrorKind::not_found;
    if (gone) co_return std::optional<Object>{};
  }
  if (!answer) co_return answer.error();
  const bool lingers = answer->uid() == object.uid() && answer->is_being_deleted();
  co_return lingers ? std::optional<Object>{*answer} : std::nullopt;
}

}  // namespace

std::string described(const Resource& resource, const Key& key) {
  return resource.kind + " " + kube::to_string(key);
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
  auto attempt = [&] { return hub.api().get(resource, key); };
  auto found = co_await with_retry(hub, attempt);
  if (found) co_return std::optional<Object>{*found};
  if (is_absence(found.error())) co_return std::optional<Object>{};
  co_return cannot("read " + described(resource, key), hub, found.error());
}

Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns,
                                            std::string label_selector) {
  kube::ListOptions options;
  options.ns = ns;
  options.label_selector = std::move(label_selector);
  auto attempt = [&] { return hub.api().list_all(resource, options); };
  auto found = co_await with_retry(hub, attempt);
  if (found) co_return std::move(*found);
  if (is_absence(found.error())) co_return std::vector<Object>{};
  co_return cannot("list " + resource.display_name() + (ns.empty() ? "" : " in namespace " + ns), hub, found.error());
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
  auto attempt = [&] { return delete_once(hub, resource, object); };
  auto deleted = co_await with_retry(hub, attempt);
  if (!deleted) co_return cannot("delete " + described(resource, object.key()), hub, deleted.error());
  co_return std::move(*deleted);
}

Awaitable<Result<bool>> serves(const Hub& hub, Resource resource) {
  auto attempt = [&] { return hub.api().serves(resource); };
  auto served = co_await with_retry(hub, attempt);
  if (!served) co_return cannot("look up whether " + resource.kind + " is served", hub, served.error());
  co_return *served;
}

}  // namespace hubferry::hubagent
