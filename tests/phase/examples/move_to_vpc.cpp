#include "move_to_vpc.hpp"

namespace hubferry::phase::test {

namespace {

using namespace std::chrono_literals;
using MoveContext = Context<MoveToVpcServices>;
using MoveHandlers = Handler<MoveToVpcServices, MoveToVpc>;

/// Every call takes a moment, and may meet bad weather.
Awaitable<> call(MoveContext& context, std::string what) {
  co_await context.clock().sleep_for(200ms);
  auto& cloud = context->cloud;
  cloud.calls.push_back(std::move(what));
  if (cloud.flaky_calls > 0) {
    --cloud.flaky_calls;
    throw boost::system::system_error(boost::asio::error::timed_out);
  }
}

Awaitable<ReconcileState> initialize(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "describe");
  move.status.instances = move.spec.instances;
  if (move.status.instances.empty())
    for (const auto& [id, instance] : context->cloud.instances)
      if (instance.vpc == move.spec.source_vpc) move.status.instances.push_back(id);
  if (move.status.instances.empty()) co_return failed("there is no instance to move");
  auto result = done();
  result.updated = true;
  co_return result;
}

Awaitable<ReconcileState> secret_matches_account(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "secret");
  const auto found = context->cloud.secrets.find(move.spec.secret_id);
  co_return found != context->cloud.secrets.end() && found->second == move.spec.account
      ? done()
      : failed("the secret is not one of account " + move.spec.account);
}

Awaitable<ReconcileState> instances_are_running(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "running");
  for (const auto& id : move.status.instances) {
    const auto found = context->cloud.instances.find(id);
    if (found == context->cloud.instances.end()) co_return failed("there is no instance " + id);
    if (!found->second.running) co_return failed("instance " + id + " does not run");
  }
  co_return done();
}

Awaitable<ReconcileState> instances_are_in_source(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "in source");
  for (const auto& id : move.status.instances)
    if (context->cloud.instances[id].vpc != move.spec.source_vpc)
      co_return failed("instance " + id + " is not in " + move.spec.source_vpc);
  co_return done();
}

Awaitable<ReconcileState> networks_belong_to_account(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "network owner");
  for (const auto& id : {move.spec.source_vpc, move.spec.target_vpc})
    if (context->cloud.networks[id].account != move.spec.account)
      co_return failed("network " + id + " belongs to another account");
  co_return done();
}

Awaitable<ReconcileState> address_ranges_agree(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "cidr");
  auto& networks = context->cloud.networks;
  co_return networks[move.spec.source_vpc].cidr == networks[move.spec.target_vpc].cidr
      ? done()
      : failed("the networks' address ranges differ");
}

Awaitable<ReconcileState> addresses_are_free(MoveContext& context, MoveToVpc& move, const State&) {
  co_await call(context, "addresses");
  for (const auto& id : move.status.instances)
    if (context->cloud.networks[move.spec.target_vpc].used_ips.contains(context->cloud.instances[id].ip))
      co_return failed("the address of " + id + " is taken");
  co_return done();
}

Awaitable<ReconcileState> wait_for_confirmation(MoveContext&, MoveToVpc& move, const State&) {
  co_return move.spec.manually_confirm && !move.status.confirmed ? not_done(10s) : done();
}

/// A step that treats every instance once, however often it is entered: `act` must be safe to repeat.
MoveHandlers::Function for_each_instance(std::string step,
                                         std::function<void(Cloud&, MoveToVpc&, const std::string&)> act) {
  return [step, act](MoveContext& context, MoveToVpc& move, const State&) -> Awaitable<ReconcileState> {
    for (const auto& id : move.status.instances) {
      co_await call(context, step + " " + id);
      act(context->cloud, move, id);
      move.status.progress[id] = step;
    }
    auto result = done();
    result.updated = true;
    json::array objects;
    for (const auto& id : move.status.instances) objects.emplace_back(id);
    result.extra["objects"] = std::move(objects);
    co_return result;
  };
}

void clone_interfaces(Cloud& cloud, MoveToVpc&, const std::string& id) {
  for (const auto& name : cloud.instances[id].interfaces) cloud.clones.emplace(name, name + "-clone");
}
void detach_interfaces(Cloud& cloud, MoveToVpc&, const std::string& id) {
  cloud.instances[id].interfaces.clear();
}
void migrate(Cloud& cloud, MoveToVpc& move, const std::string& id) {
  auto& instance = cloud.instances[id];
  cloud.networks[move.spec.source_vpc].used_ips.erase(instance.ip);
  cloud.networks[move.spec.target_vpc].used_ips.insert(instance.ip);
  instance.vpc = move.spec.target_vpc;
}
void attach_interfaces(Cloud& cloud, MoveToVpc&, const std::string& id) {
  for (const auto& [original, clone] : cloud.clones)
    if (original.starts_with(id)) cloud.instances[id].interfaces = {clone};
}
void unbind_public_ip(Cloud& cloud, MoveToVpc& move, const std::string& id) {
  auto& address = cloud.instances[id].public_ip;
  if (!address.empty()) move.status.unbound[id] = std::exchange(address, {});
}
void bind_public_ip(Cloud& cloud, MoveToVpc& move, const std::string& id) {
  if (const auto found = move.status.unbound.find(id); found != move.status.unbound.end())
    cloud.instances[id].public_ip = found->second;
}

json::value in_flight_details(const MoveToVpc& move, const State&) {
  json::array rows;
  for (const auto& id : move.status.instances) {
    const auto found = move.status.progress.find(id);
    rows.push_back({{"instance", id}, {"step", found == move.status.progress.end() ? "" : found->second}});
  }
  return rows;
}

MoveHandlers check(std::string name, std::string description, MoveHandlers::Function function) {
  return MoveHandlers::leaf({.name = std::move(name), .description = std::move(description)}, std::move(function));
}
MoveHandlers step(std::string name, std::string description,
                  std::function<void(Cloud&, MoveToVpc&, const std::string&)> act) {
  auto function = for_each_instance(name, std::move(act));
  return MoveHandlers::leaf({.name = std::move(name), .description = std::move(description), .checkpoint = true},
                            std::move(function));
}

MoveHandlers pre_flight() {
  auto account =
      MoveHandlers::parallel({.name = "prechkAccount", .description = "the account"},
                             {check("prechkSecretAppId", "the secret is the account's", secret_matches_account)});
  auto instances =
      MoveHandlers::parallel({.name = "prechkInstance", .description = "the instances"},
                             {check("prechkInsStateRunning", "all instances exist and run", instances_are_running),
                              check("prechkInsInSrcVpc", "all instances are in the source", instances_are_in_source)});
  auto network = MoveHandlers::parallel(
      {.name = "prechkNetwork", .description = "the networks"},
      {check("prechkVpcAppId", "both networks are the account's", networks_belong_to_account),
       check("prechkCIDR", "the address ranges agree", address_ranges_agree),
       check("prechkIPsNotOccupied", "all addresses are free in the target", addresses_are_free)});
  return MoveHandlers::parallel({.name = {}, .description = "pre-flight checks", .view = View::checklist},
                                {std::move(account), std::move(instances), std::move(network)});
}

MoveHandlers in_flight() {
  return MoveHandlers::serial(
             {.name = {}, .description = "the move"},
             {MoveHandlers::leaf({.name = "pause", .description = "wait for a person's word"}, wait_for_confirmation),
              step("cloneENIs", "clone the network interfaces", clone_interfaces),
              step("detachENIs", "detach the network interfaces", detach_interfaces),
              step("migrateInstances", "change the network", migrate),
              step("attachENIs", "attach the clones", attach_interfaces),
              step("unbindEIPs", "unbind public addresses", unbind_public_ip),
              step("bindEIPs", "bind public addresses", bind_public_ip)})
      .with_detail(in_flight_details);
}

}  // namespace

MoveToVpcDefinition move_to_vpc_definition(Key key) {
  MoveToVpcDefinition definition;
  definition.delay = 1min;
  definition.fetch_resource = [](MoveToVpcServices& services, Key of) -> Awaitable<Result<std::optional<MoveToVpc>>> {
    const auto found = services.resources.find(of);
    co_return found == services.resources.end() ? std::nullopt : std::optional{found->second};
  };
  definition.persist_status = [key](MoveToVpcServices& services, MoveToVpc& move) -> Awaitable<Written> {
    // What a person may set at any time is not ours to overwrite.
    move.status.confirmed = services.resources[key].status.confirmed;
    services.resources[key].status = move.status;
    co_return Written::ok();
  };
  definition.initial = "Initializing";
  definition.terminals = {{"Succeeded", Ending::success},
                          {"InitializeFailed", Ending::failure},
                          {"PreFailed", Ending::failure},
                          {"InFlightFailed", Ending::failure}};
  definition.normal = {{"Initializing", "PreFlight"}, {"PreFlight", "InFlight"}, {"InFlight", "Succeeded"}};
  definition.error = {{"Initializing", "InitializeFailed"}, {"PreFlight", "PreFailed"}, {"InFlight", "InFlightFailed"}};
  definition.handlers.emplace("Initializing", check({}, "collect what is to be moved", initialize));
  definition.handlers.emplace("PreFlight", pre_flight());
  definition.handlers.emplace("InFlight", in_flight());
  definition.normalize();
  return definition;
}

}  // namespace hubferry::phase::test
