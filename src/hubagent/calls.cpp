#include "hubagent/calls.hpp"

namespace hubferry::hubagent {

namespace {

bool goes_away(const Error& error) {
  switch (error.kind) {
    case ErrorKind::retry_later:
    case ErrorKind::unreachable:
    case ErrorKind::conflict:
    case ErrorKind::ambiguous:
    case ErrorKind::gone:
      return true;
    default:
      return false;
  }
}

/// No such object, or no such kind.
bool is_absence(const Error& error) {
  return error.kind == ErrorKind::not_found || error.kind == ErrorKind::unsupported;
}

Awaitable<Result<std::optional<Object>>> remove_once(const Hub& hub, Resource resource, Object object) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = resource;
  request.key = object.key();
  request.propagation = kube::Propagation::background;
  request.precondition_uid = object.uid();
  auto answer = co_await hub.api().call(std::move(request));
  if (!answer && answer.error().kind == ErrorKind::not_found) co_return std::optional<Object>{};
  if (!answer && answer.error().kind == ErrorKind::conflict) {
    // Another uid, which means that ours has gone; or somebody wrote to it in the same moment.
    auto current = co_await hub.api().get(resource, object.key());
    const bool gone = current ? current->uid() != object.uid() : current.error().kind == ErrorKind::not_found;
    if (gone) co_return std::optional<Object>{};
  }
  if (!answer) co_return answer.error();
  const bool lingers = answer->uid() == object.uid() && answer->is_being_deleted();
  co_return lingers ? std::optional<Object>{*answer} : std::nullopt;
}

}  // namespace

Patience::Patience(const Hub& hub)
    : clock_(hub.env().clock),
      busy_(hub.options().busy_timeout),
      unreachable_(hub.options().unreachable_timeout),
      backoff_({}, hub.env().clock, hub.env().random) {}

Awaitable<bool> Patience::again(Error error) {
  if (!goes_away(error)) co_return false;
  if (!first_failure_) first_failure_ = clock_.now();
  const auto limit = error.kind == ErrorKind::unreachable ? unreachable_ : busy_;
  const auto delay = std::max(backoff_.next(), error.retry_after.value_or(async::Duration{0}));
  if (clock_.now() + delay - *first_failure_ > limit) co_return false;
  co_await clock_.sleep_for(delay);
  co_return true;
}

Awaitable<Result<Object>> read(const Hub& hub, Resource resource, Key key) {
  auto attempt = [&] { return hub.api().get(resource, key); };
  auto found = co_await retried(hub, attempt);
  if (!found) co_return in_context(found.error(), "cannot read " + described(resource, key) + " on hub " + hub.name());
  co_return found;
}

Awaitable<Result<std::optional<Object>>> read_if_there(const Hub& hub, Resource resource, Key key) {
  auto found = co_await read(hub, std::move(resource), std::move(key));
  if (found) co_return std::optional<Object>{*found};
  if (is_absence(found.error())) co_return std::optional<Object>{};
  co_return found.error();
}

Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns) {
  return list(hub, std::move(resource), std::move(ns), {});
}

Awaitable<Result<std::vector<Object>>> list(const Hub& hub, Resource resource, std::string ns,
                                            std::string label_selector) {
  kube::ListOptions options;
  options.ns = ns;
  options.label_selector = std::move(label_selector);
  auto attempt = [&] { return hub.api().list_all(resource, options); };
  auto found = co_await retried(hub, attempt);
  if (found) co_return found;
  if (is_absence(found.error())) co_return std::vector<Object>{};
  co_return in_context(found.error(),
                       "cannot list " + resource.display_name() + " in namespace " + ns + " on hub " + hub.name());
}

Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Key key, kube::Mutation mutate) {
  auto attempt = [&] { return kube::edit(hub.api(), resource, key, mutate); };
  auto edited = co_await retried(hub, attempt);
  if (!edited)
    co_return in_context(edited.error(), "cannot change " + described(resource, key) + " on hub " + hub.name());
  co_return edited;
}

Awaitable<Result<Object>> edit(const Hub& hub, Resource resource, Object known, kube::Mutation mutate) {
  const Key key = known.key();
  auto edited = co_await kube::edit(hub.api(), resource, std::move(known), mutate, kube::EditOptions{});
  if (edited) co_return edited;
  if (!goes_away(edited.error()))
    co_return in_context(edited.error(), "cannot change " + described(resource, key) + " on hub " + hub.name());
  co_return co_await edit(hub, std::move(resource), key, std::move(mutate));
}

Awaitable<Result<>> edit_if_there(const Hub& hub, Resource resource, Object known, kube::Mutation mutate) {
  auto edited = co_await edit(hub, std::move(resource), std::move(known), std::move(mutate));
  if (edited || edited.error().kind == ErrorKind::not_found) co_return Result<>{};
  co_return edited.error();
}

Awaitable<Result<kube::Written>> create_or_patch(const Hub& hub, Resource resource, Key key, kube::Mutation mutate) {
  auto attempt = [&] { return kube::create_or_patch(hub.api(), resource, key, mutate); };
  auto written = co_await retried(hub, attempt);
  if (!written)
    co_return in_context(written.error(), "cannot write " + described(resource, key) + " on hub " + hub.name());
  co_return written;
}

Awaitable<Result<std::optional<Object>>> remove(const Hub& hub, Resource resource, Object object) {
  auto attempt = [&] { return remove_once(hub, resource, object); };
  auto removed = co_await retried(hub, attempt);
  if (!removed)
    co_return in_context(removed.error(),
                         "cannot delete " + described(resource, object.key()) + " on hub " + hub.name());
  co_return removed;
}

Awaitable<Result<bool>> serves(const Hub& hub, Resource resource) {
  auto attempt = [&] { return hub.api().serves(resource); };
  auto served = co_await retried(hub, attempt);
  if (!served)
    co_return in_context(served.error(), "cannot ask hub " + hub.name() + " whether it serves " + resource.kind);
  co_return served;
}

Awaitable<Result<CarriedResources>> served_kinds(const Hub& hub) {
  CarriedResources served;
  for (const auto& kind : hub.carried()) {
    auto is_served = co_await serves(hub, kind.resource);
    if (!is_served) co_return is_served.error();
    if (*is_served) served.push_back(kind);
  }
  co_return served;
}

}  // namespace hubferry::hubagent
