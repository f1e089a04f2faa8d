#include "hubs/flow_api.hpp"

#include <algorithm>

#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubs {

namespace {

/// As many connections as the client opens for requests.
constexpr std::size_t most_requests = 32;

constexpr std::size_t turns_until_bulk = 8;

using Priority = FlowGate::Priority;

/// Claims, detachments, deletions and proofs are about ManagedClusters and Leases; an agent waits for its certificate.
/// The rest are the objects that are copied with a cluster.
Priority priority_of(const kube::Resource& resource) {
  const bool urgent = resource == ocm::managed_clusters || resource == kube::resources::leases ||
                      resource == kube::resources::certificate_signing_requests ||
                      resource.group == "authorization.k8s.io";
  return urgent ? Priority::urgent : Priority::bulk;
}

template <typename Result>
bool is_refusal(const Result& result) {
  return !result && result.error().kind == kube::ErrorKind::retry_later;
}

}  // namespace

FlowGate::FlowGate(std::size_t most, obs::Gauge& limit_gauge) : limit_(most), limit_gauge_(limit_gauge) {
  limit_gauge_.set(static_cast<double>(limit()));
}

async::Awaitable<FlowGate::Permit> FlowGate::enter(Priority priority) {
  if (in_flight_ < limit() && urgent_.empty() && bulk_.empty()) {
    ++in_flight_;
    co_return Permit{*this};
  }
  auto& queue = priority == Priority::urgent ? urgent_ : bulk_;
  Waiter waiter;
  queue.push_back(&waiter);
  // Cancelled: it leaves the queue, or passes its turn on.
  struct Leaves {
    FlowGate& gate;
    Queue& queue;
    Waiter& waiter;
    bool entered = false;
    ~Leaves() {
      if (entered) return;
      if (waiter.admitted.is_set())
        gate.leave();
      else
        queue.remove(&waiter);
    }
  } leaves{*this, queue, waiter};
  co_await waiter.admitted.wait();
  leaves.entered = true;
  co_return Permit{*this};
}

void FlowGate::leave() {
  --in_flight_;
  admit_waiting();
}

void FlowGate::admit_waiting() {
  while (in_flight_ < limit() && (!urgent_.empty() || !bulk_.empty())) {
    const bool bulk = urgent_.empty() || (!bulk_.empty() && turns_ % turns_until_bulk == turns_until_bulk - 1);
    auto& queue = bulk ? bulk_ : urgent_;
    ++turns_;
    ++in_flight_;
    auto* next = queue.front();
    queue.pop_front();
    next->admitted.set();
  }
}

void FlowGate::answered(async::TimePoint now, async::Duration took) {
  limit_.answered(now, took, in_flight_ >= limit());
  limit_gauge_.set(static_cast<double>(limit()));
}

void FlowGate::refused(async::TimePoint now) {
  limit_.refused(now);
  limit_gauge_.set(static_cast<double>(limit()));
}

FlowApi::FlowApi(std::shared_ptr<kube::Api> inner, const std::string& hub, const kube::Env& env)
    : inner_(std::move(inner)),
      clock_(env.clock),
      gate_(most_requests,
            env.metrics
                .gauge_family("hubferry_hub_request_limit",
                              "Requests that a hub gets at once: fewer while it is slow or refuses them.", {"hub"})
                .with({hub})) {}

async::Awaitable<kube::Result<kube::Object>> FlowApi::call(kube::Request request) {
  const auto permit = co_await gate_.enter(priority_of(request.resource));
  const auto begin = clock_.now();
  auto answer = co_await inner_->call(std::move(request));
  if (is_refusal(answer))
    gate_.refused(clock_.now());
  else
    gate_.answered(clock_.now(), clock_.now() - begin);
  co_return answer;
}

async::Awaitable<kube::Result<kube::ListPage>> FlowApi::list(kube::Resource resource, kube::ListOptions options,
                                                             const kube::Decoder& decoder) {
  const auto permit = co_await gate_.enter(priority_of(resource));
  auto page = co_await inner_->list(std::move(resource), std::move(options), decoder);
  // How long a list takes depends on what is in it.
  if (is_refusal(page)) gate_.refused(clock_.now());
  co_return page;
}

async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> FlowApi::watch(kube::Resource resource,
                                                                                  kube::WatchOptions options,
                                                                                  const kube::Decoder& decoder) {
  return inner_->watch(std::move(resource), std::move(options), decoder);
}

async::Awaitable<kube::Result<kube::json::value>> FlowApi::get_path(std::string path) {
  const auto permit = co_await gate_.enter(Priority::urgent);
  auto answer = co_await inner_->get_path(std::move(path));
  if (is_refusal(answer)) gate_.refused(clock_.now());
  co_return answer;
}

}  // namespace hubferry::hubs
