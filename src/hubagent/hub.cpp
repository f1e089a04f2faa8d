#include "hubferry/hubagent/hub.hpp"

#include "hubagent/direct_hubs.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/hub_wide_rights.hpp"
#include "hubagent/known_clusters.hpp"
#include "hubagent/listed_configs.hpp"
#include "hubagent/settling_api.hpp"
#include "hubagent/shared_looks.hpp"
#include "hubagent/sign_of_life.hpp"

namespace hubferry::hubagent {

namespace {

/// Each costs a connection: far below what a client or a server allows.
constexpr std::size_t most_small_watches = 32;

std::string unanswered_write(const std::string& hub) {
  return "last write on hub " + hub + " was not answered, and may still take effect for a minute at most";
}

HubOptions with_defaults(HubOptions options) {
  if (options.carried == nullptr)
    options.carried = std::make_shared<const CarriedResources>(default_carried_resources());
  return options;
}

}  // namespace

Hub::Hub(std::string name, std::shared_ptr<kube::Api> api, HubOptions options, kube::Env env,
         std::shared_ptr<OpenWrites> open)
    : name_(std::move(name)),
      options_(with_defaults(std::move(options))),
      env_{env.clock, env.random, env.metrics, env.log.named("hubagent").with("hub", name_)},
      api_(std::make_unique<SettlingApi>(std::move(api), open ? std::move(open) : make_open_writes(), env_.clock)),
      rights_(std::make_unique<HubWideRights>(*api_, env_.clock)),
      looks_(std::make_unique<SharedLooks>(*api_, *rights_, env_.clock)),
      clusters_(*api_, ocm::managed_clusters, {}, ocm::managed_cluster_decoder(), env_),
      watches_(std::make_unique<HubWatches>(
          *api_, *rights_, [this] { return clusters_.size(); }, env_)),
      known_clusters_(std::make_unique<KnownClusters>(clusters_)),
      listed_configs_(std::make_unique<ListedConfigs>(*this)),
      seen_leases_(std::make_unique<SeenLeases>()),
      in_flight_(options_.clusters_in_flight),
      in_flight_gauge_(env_.metrics
                           .gauge_family("hubferry_hub_clusters_in_flight",
                                         "Clusters being processed on a hub right now, over all migrations.", {"hub"})
                           .with({name_})),
      small_watches_(most_small_watches) {}

Hub::~Hub() = default;

kube::Api& Hub::api() const {
  return *api_;
}

async::Awaitable<> Hub::run() {
  auto all = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(watches_->namespaces.run());
    scope.spawn(watches_->klusterlet_works.run());
    scope.spawn(watches_->leases.run());
    co_await clusters_.run();
  };
  co_await async::with_scope(std::move(all));
}

async::Awaitable<Slot> Hub::settle(MigrationRef migration, std::string cluster, Slot slot) {
  const auto settled = api_->settled_at(cluster);
  if (settled <= env_.clock.now()) co_return slot;
  slot.release();
  const Waits::Entry waiting{*waits_, migration.uid, cluster, unanswered_write(name_)};
  co_await env_.clock.sleep_until(settled);
  co_return co_await this->slot();
}

async::Awaitable<> Hub::settle_own_objects(std::string migration, std::string ns) {
  const auto settled = api_->own_objects_settled_at(migration, ns);
  if (settled <= env_.clock.now()) co_return;
  const Waits::Entry waiting{*waits_, migration, {}, "the " + unanswered_write(name_)};
  co_await env_.clock.sleep_until(settled);
}

async::Awaitable<Slot> Hub::slot() {
  auto permit = co_await in_flight_.acquire();
  co_return Slot{std::move(permit), in_flight_gauge_};
}

std::shared_ptr<SourceHub> make_source_hub(std::shared_ptr<Hub> hub) {
  return std::make_shared<DirectSourceHub>(std::move(hub));
}

std::shared_ptr<TargetHub> make_target_hub(std::shared_ptr<Hub> hub) {
  return std::make_shared<DirectTargetHub>(std::move(hub));
}

}  // namespace hubferry::hubagent
