#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

namespace {

std::string unique_name() {
  static async::Random random = async::Random::from_entropy();
  return "suite-" + random.suffix(6);
}

constexpr Duration poll{200ms};

}  // namespace

void OcmBehaviour::run(std::function<Awaitable<>()> body) {
  world_->run(run_and_clean(std::move(body)));
}

Awaitable<> OcmBehaviour::run_and_clean(std::function<Awaitable<>()> body) {
  std::exception_ptr error;
  try {
    co_await body();
  } catch (...) {
    error = std::current_exception();
  }
  while (!steps_.empty()) {
    auto step = std::move(steps_.back());
    steps_.pop_back();
    co_await step();
  }
  while (!cleanup_.empty()) {
    const auto left = std::move(cleanup_.back());
    cleanup_.pop_back();
    (void)co_await left.api->remove(left.resource, left.key);
  }
  if (error) std::rethrow_exception(error);
}

Awaitable<bool> OcmBehaviour::becomes(std::string what, facts::Fact fact, Check done) {
  auto& clock = world_->env().clock;
  const auto started = clock.now();
  while (clock.now() - started < fact.limit) {
    const bool is_done = co_await done();
    if (is_done) co_return true;
    co_await clock.sleep_for(poll);
  }
  ADD_FAILURE() << what << ": not within " << async::format_duration(fact.limit) << "; a real hub was seen to need "
                << async::format_duration(fact.seen);
  co_return false;
}

Awaitable<> OcmBehaviour::stays(std::string what, Duration span, Check holds) {
  auto& clock = world_->env().clock;
  const auto started = clock.now();
  while (clock.now() - started < span) {
    const bool still = co_await holds();
    if (!still) {
      ADD_FAILURE() << what << ": no longer after " << async::format_duration(clock.now() - started);
      co_return;
    }
    co_await clock.sleep_for(poll);
  }
}

Awaitable<std::string> OcmBehaviour::make_cluster(Api& hub, bool accepted) {
  co_return co_await make_cluster(hub, accepted, json::object{});
}

Awaitable<std::string> OcmBehaviour::make_cluster(Api& hub, bool accepted, json::object annotations) {
  co_return co_await make_cluster(hub, accepted, std::move(annotations), 60);
}

Awaitable<std::string> OcmBehaviour::make_cluster(Api& hub, bool accepted, json::object annotations,
                                                  int lease_seconds) {
  auto name = unique_name();
  json::object object{{"metadata", json::object{{"name", name}, {"annotations", std::move(annotations)}}},
                      {"spec", json::object{{"hubAcceptsClient", accepted}, {"leaseDurationSeconds", lease_seconds}}}};
  co_await make(hub, ocm::managed_clusters, std::move(object));
  co_return name;
}

Awaitable<std::string> OcmBehaviour::make_prepared_cluster(Api& hub) {
  auto name = co_await make_cluster(hub, true);
  auto prepared = [&]() -> Awaitable<bool> {
    auto status = co_await condition(hub, name, names::accepted);
    if (status != "True") co_return false;
    if (!has_import()) co_return co_await exists(hub, resources::leases, ocm::lease_key(name));
    co_return co_await exists(hub, ocm::manifest_works, Key{name, name + "-klusterlet"});
  };
  const bool is_prepared = co_await becomes("the hub prepares cluster " + name, facts::import_prepared, prepared);
  if (!is_prepared) throw std::runtime_error("the cluster was not prepared");
  co_return name;
}

Awaitable<std::optional<Object>> OcmBehaviour::find(Api& api, Resource resource, Key key) {
  auto found = co_await api.get(resource, std::move(key));
  if (!found && found.error().kind == ErrorKind::not_found) co_return std::nullopt;
  co_return found.value();
}

Awaitable<bool> OcmBehaviour::exists(Api& api, Resource resource, Key key) {
  auto found = co_await find(api, std::move(resource), std::move(key));
  co_return found.has_value();
}

Awaitable<Object> OcmBehaviour::cluster_on(Api& hub, std::string name) {
  auto found = co_await hub.get(ocm::managed_clusters, Key{{}, name});
  co_return found.value();
}

Awaitable<> OcmBehaviour::patch_cluster(Api& hub, std::string name, json::object patch) {
  auto patched = co_await hub.merge_patch(ocm::managed_clusters, Key{{}, name}, std::move(patch));
  patched.value();
}

Awaitable<> OcmBehaviour::set_accepted(Api& hub, std::string name, bool accepted) {
  json::object patch{{"spec", json::object{{"hubAcceptsClient", accepted}}}};
  co_await patch_cluster(hub, std::move(name), std::move(patch));
}

Awaitable<> OcmBehaviour::annotate(Api& hub, std::string name, std::string annotation,
                                   std::optional<std::string> value) {
  json::value wanted = value ? json::value(*value) : json::value();
  json::object patch{{"metadata", json::object{{"annotations", json::object{{annotation, std::move(wanted)}}}}}};
  co_await patch_cluster(hub, std::move(name), std::move(patch));
}

Awaitable<std::string> OcmBehaviour::condition(Api& hub, std::string cluster, std::string type) {
  auto object = co_await cluster_on(hub, std::move(cluster));
  const auto* found = find_condition(object, type);
  co_return found == nullptr ? std::string{} : std::string{string_at(*found, {"status"})};
}

Awaitable<> OcmBehaviour::set_available(Api& hub, std::string cluster) {
  const auto now = world_->env().clock.wall_now();
  const Mutation mutate = [now](json::object& object) {
    return set_condition(object_in(object, "status"),
                         {names::available, ConditionStatus::yes, "ManagedClusterAvailable", "by the test", 0}, now);
  };
  EditOptions how;
  how.subresource = "status";
  const Key key{{}, std::move(cluster)};
  auto written = co_await edit(hub, ocm::managed_clusters, key, mutate, how);
  written.value();
}

Awaitable<std::string> OcmBehaviour::renewal(Api& hub, std::string cluster) {
  auto lease = co_await find(hub, resources::leases, ocm::lease_key(cluster));
  co_return lease ? std::string{lease->string_at({"spec", "renewTime"})} : std::string{};
}

Awaitable<bool> OcmBehaviour::renews_lease(std::string what, Api& hub, std::string cluster, facts::Fact fact) {
  const auto before = co_await renewal(hub, cluster);
  auto renewed = [&]() -> Awaitable<bool> {
    auto now = co_await renewal(hub, cluster);
    co_return !now.empty() && now != before;
  };
  co_return co_await becomes(std::move(what), fact, renewed);
}

Awaitable<> OcmBehaviour::make(Api& api, Resource resource, json::object object) {
  auto made = co_await api.create(resource, std::move(object));
  at_end(api, resource, made.value().key());
}

}  // namespace hubferry::behaviour
