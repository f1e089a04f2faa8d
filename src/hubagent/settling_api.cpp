#include "hubagent/settling_api.hpp"

#include <algorithm>

#include "hubagent/absence.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubagent/migration_ref.hpp"

namespace hubferry::hubagent {

namespace {

using async::Awaitable;

/// For how long a cancelled write is awaited. Short beside the time that a shutdown has.
constexpr auto grace = std::chrono::seconds{5};

/// How long the list of groups is used that a server has.
constexpr auto groups_lifetime = std::chrono::seconds{5};

kube::Key key_of(const kube::Request& request) {
  if (!request.key.name.empty() || !request.body.is_object()) return request.key;
  kube::Key key = kube::Object{request.body.get_object()}.key();
  if (key.ns.empty()) key.ns = request.key.ns;
  return key;
}

std::string_view migration_of(const kube::Request& request) {
  const auto* object = request.body.if_object();
  return object == nullptr ? std::string_view{} : kube::string_at(*object, {"metadata", "labels", migration_label});
}

/// True if the answer to "/apis/GROUP/VERSION" has the kind, or is no such answer.
bool may_serve(const kube::json::value& kinds, const kube::Resource& resource) {
  const auto* listed = kube::find(kinds, {"resources"});
  const auto is_this = [&](const kube::json::value& entry) {
    return entry.is_object() && kube::string_at(entry.get_object(), {"name"}) == resource.plural;
  };
  return listed == nullptr || !listed->is_array() || std::ranges::any_of(listed->get_array(), is_this);
}

/// True if the write may have happened, or may yet happen.
bool is_open(const kube::Result<kube::Object>& answer) {
  return !answer && answer.error().kind == kube::ErrorKind::ambiguous;
}

/// A write that was sent.
struct Write {
  std::optional<kube::Result<kube::Object>> answer;
  std::exception_ptr error;
  async::Event ended;
};

Awaitable<> send(kube::Api& api, kube::Request request, Write& write) {
  try {
    write.answer.emplace(co_await api.call(std::move(request)));
  } catch (...) {
    write.error = std::current_exception();
  }
  write.ended.set();
}

Awaitable<> wait_for_grace(Write& write, async::Clock& clock) {
  co_await async::before_deadline(clock, clock.now() + grace, write.ended.wait());
}

/// Waits for the answer; for `grace` only once the caller is cancelled. The caller has to pass the cancellation on.
Awaitable<> wait_for_answer(Write& write, async::Clock& clock) {
  bool cancelled = false;
  try {
    co_await write.ended.wait();
  } catch (const boost::system::system_error&) {
    cancelled = true;
  }
  if (cancelled) co_await async::shielded(wait_for_grace(write, clock));
}

}  // namespace

async::TimePoint OpenWrites::settled_at(const std::function<bool(const Write&)>& concerns, async::TimePoint now) {
  std::erase_if(writes_, [&](const Write& write) { return write.until <= now; });
  auto until = now;
  for (const auto& write : writes_)
    if (concerns(write)) until = std::max(until, write.until);
  return until;
}

std::shared_ptr<OpenWrites> make_open_writes() {
  return std::make_shared<OpenWrites>();
}

SettlingApi::SettlingApi(std::shared_ptr<kube::Api> inner, std::shared_ptr<OpenWrites> open, async::Clock& clock)
    : inner_(std::move(inner)), open_(std::move(open)), clock_(clock) {}

async::TimePoint SettlingApi::settled_at(const std::string& name) {
  const auto concerns = [&](const OpenWrites::Write& write) { return write.key.ns == name || write.key.name == name; };
  return open_->settled_at(concerns, clock_.now());
}

async::TimePoint SettlingApi::own_objects_settled_at(const std::string& migration, const std::string& ns) {
  const auto concerns = [&](const OpenWrites::Write& write) {
    return write.migration == migration || (write.key.ns.empty() && write.key.name == ns);
  };
  return open_->settled_at(concerns, clock_.now());
}

Awaitable<kube::Error> SettlingApi::judged(kube::Resource resource, std::string name, kube::Error answer) {
  auto error = checked_absence(resource, name, std::move(answer));
  const bool is_absence = error.kind == kube::ErrorKind::not_found || error.kind == kube::ErrorKind::unsupported;
  if (!is_absence || names_object(error, name)) co_return error;
  auto kinds = co_await get_path("/apis/" + resource.api_version());
  if (!kinds && kinds.error().kind != kube::ErrorKind::not_found) co_return kinds.error();
  if (kinds && may_serve(*kinds, resource)) error.kind = kube::ErrorKind::bad_response;
  co_return error;
}

Awaitable<kube::Result<kube::Object>> SettlingApi::call(kube::Request request) {
  const kube::Key key = key_of(request);
  const std::string migration{migration_of(request)};
  const kube::Resource resource = request.resource;
  if (request.verb == kube::Verb::get || request.dry_run) {
    auto answer = co_await inner_->call(std::move(request));
    if (!answer) co_return co_await judged(resource, key.name, answer.error());
    co_return answer;
  }
  const bool creates = request.verb == kube::Verb::create;
  Write write;
  async::TaskScope scope{co_await async::asio::this_coro::executor};
  scope.spawn(send(*inner_, std::move(request), write));
  // A cancelled coroutine throws at its next co_await; the write must be awaited all the same.
  const bool throws = co_await async::asio::this_coro::throw_if_cancelled();
  co_await async::asio::this_coro::throw_if_cancelled(false);
  co_await wait_for_answer(write, clock_);
  std::exception_ptr cancelled;
  try {
    co_await scope.join();
  } catch (...) {
    cancelled = std::current_exception();
  }
  co_await async::asio::this_coro::throw_if_cancelled(throws);
  if (!write.answer || is_open(*write.answer)) open_->remember({key, migration, clock_.now() + longest_request});
  if (cancelled) std::rethrow_exception(cancelled);
  if (write.error) std::rethrow_exception(write.error);
  if (*write.answer) co_return std::move(*write.answer);
  // The 404 of a creation names the namespace.
  if (creates) co_return checked_absence(resource, key.name, write.answer->error());
  co_return co_await judged(resource, key.name, write.answer->error());
}

Awaitable<kube::Result<kube::ListPage>> SettlingApi::list(kube::Resource resource, kube::ListOptions options,
                                                          const kube::Decoder& decoder) {
  auto page = co_await inner_->list(resource, std::move(options), decoder);
  if (!page) co_return co_await judged(resource, {}, page.error());
  co_return std::move(*page);
}

Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> SettlingApi::watch(kube::Resource resource,
                                                                               kube::WatchOptions options,
                                                                               const kube::Decoder& decoder) {
  return inner_->watch(std::move(resource), std::move(options), decoder);
}

Awaitable<kube::Result<kube::json::value>> SettlingApi::get_path(std::string path) {
  auto answer = co_await inner_->get_path(path);
  if (answer || answer.error().kind != kube::ErrorKind::not_found || !path.starts_with("/api")) co_return answer;
  // Several kinds are looked up in a row.
  if (!groups_ || clock_.now() - groups_read_ > groups_lifetime) {
    auto groups = co_await inner_->get_path("/apis");
    if (!groups && groups.error().kind != kube::ErrorKind::not_found) co_return groups.error();
    groups_ = groups ? std::move(*groups) : kube::json::value{};
    groups_read_ = clock_.now();
  }
  if (proves_absence(*groups_, path)) co_return answer;
  groups_.reset();
  auto error = answer.error();
  error.kind = kube::ErrorKind::bad_response;
  error.message =
      "the answer does not say whether " + path + " is served" + (error.message.empty() ? "" : ": " + error.message);
  co_return error;
}

}  // namespace hubferry::hubagent
