#include "kube/http/name_lookup.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"

namespace hubferry::kube::http {

namespace {

using Addresses = NameLookup::Addresses;
using async::error_code;

/// Hundreds of hubs may share a name server that is dead: each of them blocks one thread.
constexpr std::size_t max_lookup_threads = 64;
/// How long a lookup may take before the addresses of the last time are used.
constexpr auto lookup_timeout = std::chrono::seconds{1};

/// A caller that waits, on its loop.
struct LookupWaiter {
  explicit LookupWaiter(const async::Executor& loop)
      : executor(asio::prefer(loop, asio::execution::outstanding_work.tracked)) {}

  async::Executor executor;  // keeps the loop running meanwhile
  async::Event done;
  error_code error;
  Addresses found;
};
using LookupWaiterPtr = std::shared_ptr<LookupWaiter>;

Addresses resolve_by_system(const std::string& host, error_code& error) {
  asio::io_context unused;
  asio::ip::tcp::resolver resolver{unused};
  Addresses found;
  for (const auto& entry : resolver.resolve(host, "", error)) {
    const auto address = entry.endpoint().address();
    if (std::ranges::find(found, address) == found.end()) found.push_back(address);
  }
  return found;
}

/// Both families in turn, beginning with that of the first: the system has sorted them.
Addresses interleaved(const Addresses& sorted) {
  Addresses first;
  Addresses second;
  for (const auto& address : sorted) (address.is_v6() == sorted.front().is_v6() ? first : second).push_back(address);
  Addresses all;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) all.push_back(first[i]);
    if (i < second.size()) all.push_back(second[i]);
  }
  return all;
}

}  // namespace

/// Threads share it with the NameLookup.
struct NameLookup::State : std::enable_shared_from_this<State> {
  struct Name {
    Addresses last;                              // of the last lookup that succeeded
    std::optional<asio::ip::address> preferred;  // of the last connection that worked
    Addresses avoided;
    std::vector<LookupWaiterPtr> waiters;
    bool in_flight = false;
    async::TimePoint since{};  // when it was put in flight
  };

  explicit State(Resolve given) : resolve(std::move(given)) {}

  /// When to stop waiting for the lookup; never, where nothing is remembered.
  async::TimePoint join(const std::string& host, const LookupWaiterPtr& waiter, async::TimePoint now) {
    const std::lock_guard lock{mutex};
    auto& name = names[host];
    name.waiters.push_back(waiter);
    if (!name.in_flight) {
      name.in_flight = true;
      name.since = now;
      queue.push_back(host);
      start_threads();
    }
    return name.last.empty() ? async::never : async::later(name.since, lookup_timeout);
  }

  void leave(const std::string& host, const LookupWaiterPtr& waiter) {
    const std::lock_guard lock{mutex};
    std::erase(names[host].waiters, waiter);
  }

  Addresses ordered(const std::string& host, Addresses found) {
    const std::lock_guard lock{mutex};
    const auto& name = names[host];
    if (found.empty()) found = name.last;
    if (found.empty()) return found;
    found = interleaved(found);
    if (name.preferred)
      if (const auto at = std::ranges::find(found, *name.preferred); at != found.end())
        std::rotate(found.begin(), at, at + 1);
    for (const auto& avoided : name.avoided)
      if (const auto at = std::ranges::find(found, avoided); at != found.end()) std::rotate(at, at + 1, found.end());
    return found;
  }

  /// With the mutex held.
  void start_threads() {
    while (!queue.empty() && threads < max_lookup_threads) {
      const std::string host = std::move(queue.front());
      queue.pop_front();
      try {
        // Detached on purpose: nothing can end it but the resolver itself.
        std::thread{[state = shared_from_this(), host] { state->look_up(host); }}.detach();
        ++threads;
      } catch (const std::system_error&) {
        finish(host, {}, asio::error::try_again);
      }
    }
  }

  void look_up(const std::string& host) {
    error_code error;
    auto found = resolve(host, error);
    if (!error && found.empty()) error = asio::error::host_not_found;
    const std::lock_guard lock{mutex};
    --threads;
    finish(host, std::move(found), error);
    start_threads();
  }

  /// With the mutex held: a waiter that leaves does so before its loop ends.
  void finish(const std::string& host, Addresses found, error_code error) {
    auto& name = names[host];
    name.in_flight = false;
    if (!error) {
      name.last = found;
      std::erase_if(name.avoided,
                    [&](const auto& address) { return std::ranges::find(found, address) == found.end(); });
    }
    for (const auto& waiter : std::exchange(name.waiters, {}))
      asio::post(waiter->executor, [waiter, found, error] {
        waiter->found = found;
        waiter->error = error;
        waiter->done.set();
      });
  }

  const Resolve resolve;
  std::mutex mutex;
  std::map<std::string, Name> names;
  std::deque<std::string> queue;  // names that wait for a thread
  std::size_t threads = 0;
};

NameLookup::NameLookup(Resolve resolve) : state_(std::make_shared<State>(std::move(resolve))) {}

NameLookup::~NameLookup() = default;

NameLookup& NameLookup::of_process() {
  // Never destroyed: a thread may be looking up when the process ends.
  static auto& lookup = *new NameLookup{resolve_by_system};
  return lookup;
}

async::Awaitable<Addresses> NameLookup::find(std::string host, async::Clock& clock) {
  const auto state = state_;
  const auto waiter = std::make_shared<LookupWaiter>(co_await asio::this_coro::executor);
  struct Leaving {
    State& state;
    const std::string& host;
    const LookupWaiterPtr& waiter;
    ~Leaving() { state.leave(host, waiter); }
  } leaving{*state, host, waiter};
  const auto give_up = state->join(host, waiter, clock.now());
  co_await async::before_deadline(clock, give_up, waiter->done.wait());
  auto addresses = state->ordered(host, waiter->found);
  if (addresses.empty()) throw boost::system::system_error(waiter->error);
  co_return addresses;
}

void NameLookup::prefer(const std::string& host, const asio::ip::address& address) {
  const std::lock_guard lock{state_->mutex};
  auto& name = state_->names[host];
  name.preferred = address;
  std::erase(name.avoided, address);
}

void NameLookup::avoid(const std::string& host, const asio::ip::address& address) {
  const std::lock_guard lock{state_->mutex};
  auto& name = state_->names[host];
  if (name.preferred == address) name.preferred.reset();
  if (std::ranges::find(name.avoided, address) == name.avoided.end()) name.avoided.push_back(address);
}

}  // namespace hubferry::kube::http
