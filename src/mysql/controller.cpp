#include "hubferry/mysql/controller.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/controller.hpp"
#include "mysql/cluster_phases.hpp"

namespace hubferry::mysql {

namespace {

/// The definition with functions in place of a store: for rendering.
template <typename Resource>
const phase::DefinitionBase& for_rendering() {
  static const auto made = [] {
    auto definition = std::make_unique<phase::DefaultDefinition<Services, Resource>>();
    declare(*definition);
    definition->fetch_resource = [](Services&, kube::Key) -> Awaitable<phase::Result<std::optional<Resource>>> {
      co_return std::optional<Resource>{};
    };
    definition->persist_status = [](Services&, Resource&) -> Awaitable<phase::Written> {
      co_return phase::Written::gone();
    };
    definition->normalize();
    return definition;
  }();
  return *made;
}

std::vector<kube::Key> by_label(const kube::Object& object) {
  return {{std::string{object.ns()}, std::string{object.label(names::cluster_label)}}};
}

std::vector<kube::Key> by_cluster_field(const kube::Object& backup) {
  return {{std::string{backup.ns()}, std::string{backup.string_at({"spec", "cluster"})}}};
}

}  // namespace

const phase::DefinitionBase& cluster_definition() {
  return for_rendering<Cluster>();
}

const phase::DefinitionBase& backup_definition() {
  return for_rendering<Backup>();
}

struct Controller::State {
  State(kube::Api& given_api, sql::Connector& connector, Exporter& exporter, ControllerOptions given, kube::Env env)
      : options(std::move(given)),
        fenced(options.fence == nullptr ? nullptr : with_fence(given_api, *options.fence, env)),
        api(fenced ? *fenced : given_api),
        reporter(api, options.instance, env),
        prober(exporter, {options.probe_interval, options.probe_timeout}, env,
               [this](const kube::Key& key) { clusters.enqueue(key); }),
        services{api, connector, prober, reporter, options, env},
        clusters(api, mysql_clusters, services, env, cluster_options()),
        backups(api, mysql_backups, services, env, backup_options()) {
    declare(clusters.definition);
    declare(backups.definition);
    const std::string ours = names::cluster_label;
    services.pods = &clusters.watches(kinds::pods, by_label, ours);
    services.claims = &clusters.watches(kinds::persistent_volume_claims, by_label, ours);
    clusters.owns(kinds::stateful_sets, ours);
    services.services = &clusters.owns(kinds::services, ours);
    services.endpoint_slices = &clusters.owns(kinds::endpoint_slices, ours);
    services.config_maps = &clusters.owns(kube::resources::config_maps, ours);
    services.backups = &clusters.watches(mysql_backups, by_cluster_field);
    backups.owns(kinds::jobs, ours);
    clusters.on_change = [this](const Cluster* old, const Cluster* now) {
      reporter.see_cluster(old == nullptr ? nullptr : &old->object, now == nullptr ? nullptr : &now->object);
      if (now == nullptr) prober.forget(old->object.key());
    };
    backups.on_change = [this](const Backup* old, const Backup* now) {
      reporter.see_backup(old == nullptr ? nullptr : &old->object, now == nullptr ? nullptr : &now->object);
    };
    clusters.add_task([this] { return reporter.run(); });
    clusters.add_task([this] { return prober.run(); });
  }

  phase::ControllerOptions cluster_options() {
    phase::ControllerOptions made;
    made.name = "mysqlcluster";
    made.watch_namespace = options.watch_namespace;
    made.readiness = options.readiness;
    made.fence = options.fence;
    made.on_transition = [this](const phase::Transition& transition) {
      reporter.cluster_moved(transition);
      if (options.on_transition) options.on_transition(transition);
    };
    return made;
  }
  phase::ControllerOptions backup_options() {
    phase::ControllerOptions made;
    made.name = "mysqlbackup";
    made.watch_namespace = options.watch_namespace;
    made.fence = options.fence;
    made.on_transition = options.on_transition;
    return made;
  }

  /// A deposed leader would take the pod and the endpoint from a primary that its successor has made.
  static std::shared_ptr<kube::Api> with_fence(kube::Api& api, kube::Fence& fence, const kube::Env& env) {
    return kube::make_fenced_api({std::shared_ptr<void>{}, &api}, fence, env);
  }

  ControllerOptions options;
  std::shared_ptr<kube::Api> fenced;  // null without a fence
  kube::Api& api;
  Reporter reporter;
  Prober prober;
  Services services;
  phase::Controller<Services, Cluster> clusters;
  phase::Controller<Services, Backup> backups;
};

Controller::Controller(kube::Api& api, sql::Connector& connector, Exporter& exporter, ControllerOptions options,
                       kube::Env env)
    : state_(std::make_unique<State>(api, connector, exporter, std::move(options), std::move(env))) {}

Controller::~Controller() = default;

async::Awaitable<> Controller::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(state_->clusters.run());
    scope.spawn(state_->backups.run());
    co_return;
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::mysql
