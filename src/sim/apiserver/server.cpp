#include "hubferry/sim/server.hpp"

#include <algorithm>

#include "sim/apiserver/core.hpp"

namespace hubferry::sim {

namespace {

void append_line(std::string& text, const RequestRecord& record) {
  text += async::format_duration(record.at.time_since_epoch()) + " " + record.user + " " + record.verb + " " +
          record.resource;
  if (!record.subresource.empty()) text += "/" + record.subresource;
  if (!record.key.ns.empty() || !record.key.name.empty()) text += " " + kube::to_string(record.key);
  text += ": " + record.outcome + "\n";
}

}  // namespace

User admin() {
  return {"kubernetes-admin", {"system:masters", "system:authenticated"}, {}};
}

Server::Server(Options options, kube::Env env) {
  async::Random random = options.seed ? async::Random{*options.seed} : env.random.fork();
  core_ = std::make_shared<Core>(std::move(options), env, random);
  admin_ = make_direct_api(core_, admin());
}

Server::~Server() = default;

kube::Api& Server::api() {
  return *admin_;
}

std::unique_ptr<kube::Api> Server::api_as(User user) {
  return make_direct_api(core_, std::move(user));
}

Faults& Server::faults() {
  return core_->faults;
}

std::size_t Server::cut_watches(std::size_t most) {
  std::size_t cut = 0;
  for (const auto& collection : core_->store().collections()) cut += collection->cut_watches(most - cut);
  return cut;
}

void Server::compact() {
  core_->compact();
}

void Server::outage(bool down) {
  core_->faults.outage(down);
  if (down) cut_watches();
}

void Server::add_admission(const kube::Resource& resource, Admission admission) {
  core_->add_admission(resource, std::move(admission));
}

void Server::observe_writes(WriteObserver observer) {
  core_->observe_writes(std::move(observer));
}

void Server::reseed(std::uint64_t seed) {
  core_->random = async::Random{seed};
  core_->faults.reseed(core_->random.fork());
}

std::string Server::add_token(User user) {
  return core_->add_token(std::move(user), std::nullopt, {});
}

std::vector<kube::Object> Server::objects(const kube::Resource& resource, const std::string& ns) const {
  core_->execute_late_requests();
  std::vector<kube::Object> all;
  if (const auto* kind = core_->kinds().find(resource); kind != nullptr && kind->collection != nullptr)
    kind->collection->visit(
        ns, [&](const kube::Key&, const Entry& entry) { all.push_back(in_version(*kind, entry.object)); });
  return all;
}

std::optional<kube::Object> Server::object(const kube::Resource& resource, const kube::Key& key) const {
  core_->execute_late_requests();
  const auto* kind = core_->kinds().find(resource);
  if (kind == nullptr || kind->collection == nullptr) return std::nullopt;
  const auto found = kind->collection->entries.find(key);
  if (found == kind->collection->entries.end()) return std::nullopt;
  return in_version(*kind, found->second.object);
}

std::size_t Server::count(const kube::Resource& resource) const {
  core_->execute_late_requests();
  const auto* kind = core_->kinds().find(resource);
  return kind == nullptr || kind->collection == nullptr ? 0 : kind->collection->entries.size();
}

std::int64_t Server::resource_version() const {
  return core_->store().version();
}

std::size_t Server::open_watches() const {
  std::size_t open = 0;
  for (const auto& collection : core_->store().collections()) open += collection->watches();
  return open;
}

const std::vector<RequestRecord>& Server::requests() const {
  return core_->requests;
}

void Server::forget_requests() {
  core_->requests.clear();
}

void Server::ignore_validation_rules() {
  core_->validation_rules = false;
}

std::string Server::timeline() const {
  std::string text;
  for (const auto& record : core_->requests) append_line(text, record);
  return text;
}

std::string merged_timeline(const std::vector<const Server*>& servers) {
  std::vector<std::pair<const RequestRecord*, const Server*>> all;
  for (const auto* server : servers)
    for (const auto& record : server->requests()) all.emplace_back(&record, server);
  std::ranges::sort(all, {}, [](const auto& entry) { return entry.first->sequence; });
  std::string text;
  for (const auto& [record, server] : all) {
    text += server->name() + " ";
    append_line(text, *record);
  }
  return text;
}

const std::string& Server::name() const {
  return core_->options().name;
}

}  // namespace hubferry::sim
