#include "relocator/destinations.hpp"

#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::relocator {

namespace {

constexpr auto verified_for = std::chrono::seconds{15};
constexpr auto sync_sets_valid_for = std::chrono::minutes{1};
constexpr const char* kubeconfig_key = "kubeconfig";

/// Throws kube::ConfigError. Its text never holds a credential.
kube::ClientConfig config_of(const kube::Object& secret) {
  const std::string where = "Secret " + kube::to_string(secret.key());
  const auto encoded = secret.string_at({"data", kubeconfig_key});
  if (encoded.empty()) throw kube::ConfigError(where + " has no key " + kubeconfig_key);
  const auto text = kube::decode_base64(encoded);
  if (!text) throw kube::ConfigError(where + ": the key " + kubeconfig_key + " is not base64");
  auto config = kube::parse_kubeconfig(*text, where, std::nullopt);
  if (!config.server.starts_with("https://"))
    throw kube::ConfigError(where + ": the server is not https: Secrets would be sent in clear text");
  return config;
}

/// The uid of its namespace kube-system. Also if only this is forbidden, it is a problem: without its identity nobody
/// knows later where a move has begun.
Awaitable<OrProblem<std::string>> identify(kube::Api& destination) {
  const Key system{{}, "kube-system"};
  auto answer = co_await destination.get(kube::resources::namespaces, system);
  if (!answer)
    co_return Problem{reasons::no_connection, "the destination cannot be identified: " + answer.error().describe()};
  // Named, because a Problem can be made of a string, too.
  co_return OrProblem<std::string>{boost::system::in_place_value, std::string{answer->uid()}};
}

}  // namespace

void throw_exception_from_error(const Problem& problem, const boost::source_location&) {
  throw std::runtime_error(problem.reason + ": " + problem.message);
}

Destinations::Destinations(kube::Api& source, hubs::Connect connect, kube::Env env)
    : source_(source), connect_(std::move(connect)), env_(std::move(env)) {}

Awaitable<OrProblem<std::shared_ptr<Destination>>> Destinations::connect(Key secret_key) {
  for (;;) {
    const auto known = known_.find(secret_key);
    if (known != known_.end() && env_.clock.now() < async::later(known->second->verified, verified_for))
      co_return known->second;
    const auto running = opening_.find(secret_key);
    if (running == opening_.end()) co_return co_await open_for_all(secret_key);
    const auto opening = running->second;
    co_await opening->done.wait();
    if (opening->result) co_return *opening->result;
  }
}

Awaitable<Destinations::Opened> Destinations::open_for_all(Key secret_key) {
  /// Also if it is cancelled: then another one of those that wait does it.
  struct End {
    Destinations& of;
    const Key& key;
    ~End() {
      const auto opening = of.opening_.extract(key);
      if (!opening.empty()) opening.mapped()->done.set();
    }
  };
  const auto opening = std::make_shared<Opening>();
  opening_[secret_key] = opening;
  const End end{*this, secret_key};
  opening->result = co_await read_and_open(secret_key);
  co_return *opening->result;
}

Awaitable<Destinations::Opened> Destinations::read_and_open(Key secret_key) {
  auto secret = co_await source_.get(kube::resources::secrets, secret_key);
  if (!secret)
    co_return Problem{reasons::missing_secret, "kubeconfig Secret of the destination: " + secret.error().describe()};
  auto opened = co_await open(secret_key, *secret);
  if (opened) {
    known_[secret_key] = *opened;
  } else {
    known_.erase(secret_key);
  }
  co_return opened;
}

Awaitable<Destinations::Opened> Destinations::open(Key key, kube::Object secret) {
  const std::string version = std::string{secret.uid()} + "@" + std::string{secret.resource_version()};
  const auto known = known_.find(key);
  std::shared_ptr<Destination> destination =
      known != known_.end() && known->second->version == version ? known->second : std::make_shared<Destination>();
  destination->version = version;
  if (destination->api == nullptr) {
    try {
      const auto config = config_of(secret);
      destination->api = connect_("destination " + kube::to_string(key), config);
      env_.log.info("connecting to a destination", {{"secret", kube::to_string(key)}, {"server", config.server}});
    } catch (const std::exception& error) {
      co_return Problem{reasons::no_connection, std::string{"kubeconfig of the destination: "} + error.what()};
    }
  }
  auto identity = co_await identify(*destination->api);
  if (!identity) co_return identity.error();
  kube::ListOptions one;
  one.limit = 1;
  auto served = co_await destination->api->list(ocm::cluster_deployments, one, kube::object_decoder());
  if (!served)
    co_return Problem{reasons::no_connection, "the destination's ClusterDeployments cannot be listed (has it Hive?): " +
                                                  served.error().describe()};
  const kube::ListOptions all;
  destination->hive_relocates = co_await destination->api->list_all(ocm::cluster_relocates, all);
  destination->identity = *identity;
  destination->verified = env_.clock.now();
  co_return destination;
}

Awaitable<OrProblem<bool>> Destinations::is_still_there(std::shared_ptr<Destination> destination) {
  auto identity = co_await identify(*destination->api);
  if (!identity) co_return identity.error();
  co_return *identity == destination->identity;
}

Awaitable<kube::Result<std::set<std::string>>> Destinations::selector_sync_sets(
    std::shared_ptr<Destination> destination) {
  const auto read = destination->sync_sets_read;
  if (read && env_.clock.now() < async::later(*read, sync_sets_valid_for)) co_return destination->selector_sync_sets;
  const kube::ListOptions all;
  auto listed = co_await destination->api->list_all(ocm::selector_sync_sets, all);
  if (!listed) co_return listed.error();
  destination->selector_sync_sets.clear();
  for (const auto& one : *listed) destination->selector_sync_sets.emplace(one.name());
  destination->sync_sets_read = env_.clock.now();
  co_return destination->selector_sync_sets;
}

Awaitable<OrProblem<std::string>> Destinations::source_identity() {
  // Named, because a Problem can be made of a string, too.
  using boost::system::in_place_value;
  if (!source_identity_.empty()) co_return OrProblem<std::string>{in_place_value, source_identity_};
  const Key system{{}, "kube-system"};
  auto answer = co_await source_.get(kube::resources::namespaces, system);
  if (!answer) co_return Problem{reasons::move_failed, "this hub cannot be identified: " + answer.error().describe()};
  source_identity_ = std::string{answer->uid()};
  co_return OrProblem<std::string>{in_place_value, source_identity_};
}

}  // namespace hubferry::relocator
