#include "migration/ledger_store.hpp"

#include <charconv>

#include "hubferry/kube/edit.hpp"
#include "migration/pending.hpp"
#include "migration/retry.hpp"
#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

/// What a person has taken out of the list of all clusters, or put in, does not count where the spec has it too.
Ledger data_of(const kube::Object& config_map, const Migration& migration) {
  const auto* data = config_map.find({"data"});
  if (data == nullptr || !data->is_object()) return {};
  return ledger_from_data(data->get_object(), migration.listed_clusters());
}

OperationError foreign_ledger(const Migration& migration) {
  return OperationError::foreign_config_map(
      "ConfigMap " + kube::to_string(migration.object.key()) +
      " does not belong to this migration: rename or delete it, or give the migration another name");
}

/// The ledger of a migration of the same name that no longer exists, which the garbage collector has yet to delete.
bool is_left_behind(const kube::Object& config_map, const Migration& migration) {
  if (config_map.uid().empty() || kube::is_owned_by(config_map, migration.object.uid())) return false;
  const auto* owners = config_map.find({"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->get_array().size() != 1) return false;
  const auto* owner = owners->get_array().front().if_object();
  if (owner == nullptr) return false;
  const auto uid = kube::string_at(*owner, {"uid"});
  return kube::string_at(*owner, {"kind"}) == managed_cluster_migrations.kind &&
         kube::string_at(*owner, {"name"}) == migration.object.name() && !uid.empty() &&
         config_map.label(hubagent::migration_label) == uid;
}

bool is_foreign(const kube::Object& config_map, const Migration& migration) {
  return !config_map.uid().empty() && !kube::is_owned_by(config_map, migration.object.uid());
}

constexpr const char* epoch_annotation = "hubferry.io/leader-epoch";
constexpr const char* leader_annotation = "hubferry.io/leader";

/// The term of the leader that last wrote the ledger; -1: none.
std::int64_t epoch_of(const json::object& config_map) {
  const auto text = kube::string_at(config_map, {"metadata", "annotations", epoch_annotation});
  std::int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

json::object term_annotations(const kube::LeaderEpoch& term) {
  return {{epoch_annotation, std::to_string(term.number)}, {leader_annotation, term.identity}};
}

/// True if this leader was the last one to write it. Our number may have been raised since.
bool is_written_by(const json::object& config_map, const kube::LeaderEpoch& term) {
  return kube::string_at(config_map, {"metadata", "annotations", leader_annotation}) == term.identity;
}

/// Records our term; false if it was there already.
bool put_epoch(json::object& config_map, const kube::Fence& fence) {
  const auto term = fence.epoch();
  if (epoch_of(config_map) == term.number && is_written_by(config_map, term)) return false;
  auto& annotations = kube::object_in(kube::object_in(config_map, "metadata"), "annotations");
  for (const auto& [name, value] : term_annotations(term)) annotations[name] = value;
  return true;
}

bool is_newer(const json::object& config_map, const kube::Fence* fence) {
  return fence != nullptr && epoch_of(config_map) > fence->epoch().number;
}

/// Of reading and writing the ledger against another leader's writes.
constexpr int most_attempts = 5;

/// Not replaced: the garbage collector, which knows it by its uid, might delete what we write.
OperationError left_behind(const Migration& migration) {
  return kube::Error{kube::ErrorKind::conflict,
                     0,
                     {},
                     "ConfigMap " + kube::to_string(migration.object.key()) +
                         " belongs to a deleted migration of the same name: waiting for its garbage collection",
                     std::nullopt};
}

OperationError other_leader() {
  return kube::Error{kube::ErrorKind::conflict, 0, {}, "another leader writes the ledger", std::nullopt};
}

/// Sets owner and label. True if that changed anything.
bool claim(json::object& config_map, const Migration& migration) {
  bool changed = kube::set_owner(config_map, managed_cluster_migrations, migration.object,
                                 {.controller = false, .block_owner_deletion = false})
                     .value();
  auto& metadata = config_map["metadata"].as_object();
  auto& label = kube::object_in(metadata, "labels")[hubagent::migration_label];
  const json::value uid(migration.object.uid());
  if (label != uid) {
    label = uid;
    changed = true;
  }
  return changed;
}

/// The API server's own phrase: it creates nothing in a namespace that is being deleted.
bool is_namespace_ending(const OperationError& error) {
  return error.is(kube::ErrorKind::forbidden) && error.cause()->request()->denied_by_admission &&
         error.message().find("being terminated") != std::string::npos;
}

/// Retried without a deadline. Rollbacking and Cleaning also retry errors that only a person can resolve.
template <typename Operation>
std::invoke_result_t<Operation&> retry_ledger(Step& step, Operation operation) {
  const auto time = step.time().unlimited();
  async::Backoff backoff{
      {.first = std::chrono::seconds{1}, .most = std::chrono::minutes{1}}, step.clock(), step->env.random};
  auto result = co_await retry(step, time, operation);
  while (!result && survives_deletion(step.phase()) && !is_namespace_ending(result.error()) &&
         result.error().kind() != OperationError::Kind::superseded) {
    step.report(kube::ConditionStatus::no, result.error().reason(),
                "waiting for the ledger: " + result.error().message());
    co_await step.save();
    co_await backoff.pause();
    result = co_await retry(step, time, operation);
  }
  co_return result;
}

}  // namespace

Awaitable<OperationResult<std::optional<Ledger>>> read_ledger(kube::Api& api, const Migration& migration) {
  auto read = co_await api.get(kube::resources::config_maps, migration.object.key());
  if (!read && read.error().kind == kube::ErrorKind::not_found) co_return std::optional<Ledger>{};
  if (!read) co_return OperationError{read.error()};
  if (is_left_behind(*read, migration)) co_return std::optional<Ledger>{};
  if (is_foreign(*read, migration)) co_return foreign_ledger(migration);
  co_return std::optional<Ledger>{data_of(*read, migration)};
}

namespace {

/// A manager that takes the migration over records that in its status, and only then writes the ledger. So if another
/// leader wrote the ledger last, and the status, read after it, names us, that leader is the deposed one. Managers with
/// Leases of their own depose each other.
Awaitable<OperationResult<>> check_not_superseded(kube::Api& api, const Migration& migration,
                                                  const kube::Fence& fence) {
  auto read = co_await api.get(managed_cluster_migrations, migration.object.key());
  if (!read && read.error().kind != kube::ErrorKind::not_found) co_return OperationError{read.error()};
  if (!read || read->uid() != migration.object.uid()) co_return OperationError::superseded("the migration is gone");
  const auto leader = phase::KubeResource{*read}.leader();
  if (!leader || leader->identity == fence.epoch().identity) co_return OperationResult<>{};
  co_return OperationError::superseded("another manager works on the migration: " + leader->identity);
}

/// read_ledger(), and from now on an older leader cannot change what was read.
/// `on_other` is called if another manager has written it last, and the status names us nevertheless.
using OnOther = std::function<void(const std::string& identity)>;
Awaitable<OperationResult<std::optional<Ledger>>> claim_ledger(kube::Api& api, const Migration& migration,
                                                               kube::Fence* fence, OnOther on_other) {
  if (fence == nullptr) co_return co_await read_ledger(api, migration);
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto read = co_await api.get(kube::resources::config_maps, migration.object.key());
    if (!read && read.error().kind == kube::ErrorKind::not_found) co_return std::optional<Ledger>{};
    if (!read) co_return OperationError{read.error()};
    if (is_left_behind(*read, migration)) co_return std::optional<Ledger>{};
    if (is_foreign(*read, migration)) co_return foreign_ledger(migration);
    if (!is_written_by(read->json(), fence->epoch())) {
      auto ours = co_await check_not_superseded(api, migration, *fence);
      if (!ours) co_return ours.error();
      on_other(std::string{read->annotation(leader_annotation)});
    }
    if (is_newer(read->json(), fence)) {
      const bool ours = co_await fence->outrank(epoch_of(read->json()));
      if (!ours) co_return other_leader();
    }
    const auto term = fence->epoch();
    if (epoch_of(read->json()) == term.number && is_written_by(read->json(), term))
      co_return std::optional<Ledger>{data_of(*read, migration)};
    json::object metadata{{"resourceVersion", read->resource_version()}, {"annotations", term_annotations(term)}};
    json::object patch{{"metadata", std::move(metadata)}};
    auto claimed = co_await api.merge_patch(kube::resources::config_maps, migration.object.key(), std::move(patch));
    if (claimed) co_return std::optional<Ledger>{data_of(*claimed, migration)};
    if (!kube::is_transient(claimed.error().kind)) co_return OperationError{claimed.error()};
  }
  co_return other_leader();
}

/// False if it is known to be gone, read from the API server: a cache may not have seen that yet.
Awaitable<kube::Result<bool>> still_exists(kube::Api& api, const Migration& migration) {
  auto read = co_await api.get(managed_cluster_migrations, migration.object.key());
  if (!read && read.error().kind == kube::ErrorKind::not_found) co_return false;
  if (!read) co_return read.error();
  co_return read->uid() == migration.object.uid();
}

}  // namespace

namespace {

/// Without `may_create` it must exist. By a patch: the manager's role has no update.
Awaitable<kube::Result<>> write_ledger(kube::Api& api, kube::Key key, kube::Mutation mutate, bool may_create) {
  kube::EditOptions options;
  options.create = may_create;
  auto written = co_await kube::create_or_patch(api, kube::resources::config_maps, std::move(key), std::move(mutate),
                                                std::move(options));
  if (!written) co_return written.error();
  co_return kube::Result<>{};
}

}  // namespace

Awaitable<OperationResult<>> change_ledger(kube::Api& api, const Migration& migration, Ledger known,
                                           LedgerChange change, kube::Fence* fence) {
  std::optional<kube::Object> refused;  // not ours to change
  bool others = false;                  // the last write was another leader's
  std::string checked;                  // the version of the ledger after which the status named us
  auto mutate = [&](json::object& object) {
    const kube::Object present{object};
    refused.reset();
    others =
        fence != nullptr && !present.uid().empty() &&
        (is_newer(object, fence) || (!is_written_by(object, fence->epoch()) && present.resource_version() != checked));
    if (others || is_foreign(present, migration)) refused = present;
    if (refused) return false;
    bool changed = claim(object, migration);
    if (fence != nullptr) changed = put_epoch(object, *fence) || changed;
    auto ledger = data_of(present, migration);
    if (ledger.all.empty()) ledger = known;
    change(ledger);
    auto data = to_data(ledger);
    if (object["data"] == data) return changed;
    object["data"] = std::move(data);
    return true;
  };
  // Without our finalizer, which goes last, it may be gone already.
  if (migration.is_being_deleted()) {
    auto exists = co_await still_exists(api, migration);
    if (!exists) co_return OperationError{exists.error()};
    if (!*exists) co_return OperationResult<>{};
  }
  bool may_create = fence == nullptr;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto written = co_await write_ledger(api, migration.object.key(), mutate, may_create);
    if (!written && !may_create && written.error().kind == kube::ErrorKind::not_found) {
      // It names no writer, so only the status can say that another manager works on the migration.
      auto ours = co_await check_not_superseded(api, migration, *fence);
      if (!ours) co_return ours;
      may_create = true;
      continue;
    }
    if (!written) co_return OperationError{written.error()};
    if (!refused) co_return OperationResult<>{};
    if (is_left_behind(*refused, migration)) co_return left_behind(migration);
    if (is_foreign(*refused, migration)) co_return foreign_ledger(migration);
    auto ours = co_await check_not_superseded(api, migration, *fence);
    if (!ours) co_return ours;
    checked = refused->resource_version();
    if (!is_newer(refused->json(), fence)) continue;
    const bool leads = co_await fence->outrank(epoch_of(refused->json()));
    if (!leads) co_return other_leader();
  }
  co_return other_leader();
}

namespace {

/// True if the spec is still the one whose clusters were recorded.
bool is_spec_as_validated(const Migration& migration) {
  const auto* validated = kube::find_condition_in_status(migration.status, conditions::validated);
  const auto* generation = validated == nullptr ? nullptr : validated->if_contains("observedGeneration");
  return generation != nullptr && *generation == migration.object.generation();
}

/// The clusters that the migration has touched, as the hubs know them.
Awaitable<OperationResult<ClusterNames>> find_touched(Step& step) {
  const auto ref = step.migration.ref();
  auto on_the_source = [&](hubagent::SourceHub& hub) { return hub.claimed(ref); };
  auto claimed = co_await on_source(step, on_the_source);
  if (!claimed) co_return claimed.error();
  auto on_the_target = [&](hubagent::TargetHub& hub) { return hub.copied(ref); };
  const bool given_up = LeftBehind{step.migration}.covers(step.migration.to());
  auto copied = co_await on_target(step, given_up ? step.time().one_attempt() : step.time(), std::move(on_the_target));
  // The source has claimed what had arrived on a target that is lost.
  if (!copied && given_up) co_return std::move(*claimed);
  if (!copied) co_return copied.error();
  ClusterNames touched;
  std::ranges::set_union(*claimed, *copied, std::back_inserter(touched));
  co_return touched;
}

Awaitable<OperationResult<ClusterNames>> find_recorded_clusters(Step& step) {
  const auto spec = step.migration.spec();
  // Before that phase has ended nothing is touched, and the spec of now is the one that counts.
  const bool is_new = step.phase() == phases::validating;
  if (spec.clusters && (is_new || is_spec_as_validated(step.migration))) co_return *spec.clusters;
  if (!is_new) co_return co_await find_touched(step);
  auto resolve = [&](hubagent::SourceHub& hub) {
    return hub.resolve_placement(spec.placement.value_or(std::string{}));
  };
  co_return co_await on_source(step, resolve);
}

/// Writes the ledger; where it cannot be, since its namespace is being deleted, it is kept in memory: the migration
/// must end all the same, and after a crash the hubs know the rest.
template <typename Write>
Awaitable<OperationResult<>> write_or_keep(Step& step, const Ledger& ledger, Write write) {
  auto written = co_await retry_ledger(step, write);
  if (written || !is_namespace_ending(written.error()) || !survives_deletion(step.phase())) co_return written;
  step.log().warn("ledger cannot be written, keeping it in memory", {{"error", written.error().describe()}});
  step->unwritten_ledgers[std::string{step.migration.object.uid()}] = ledger;
  co_return OperationResult<>{};
}

}  // namespace

namespace {

/// A successor of ours would have deposed us before it wrote the ledger: the status would not name us any more.
void report_rival(Step& step, const std::string& identity) {
  const bool was_ours = step->claimed_ledgers.contains(std::string{step.migration.object.uid()});
  if (!was_ours || identity.empty() || !step->rivals.insert(identity).second) return;
  step.log().warn("another manager works on the same migrations, with a Lease of its own: stop one of them",
                  {{"other", identity}});
  if (step->options.on_rival) step->options.on_rival(identity);
}

}  // namespace

Awaitable<OperationResult<Ledger>> load_ledger(Step& step) {
  OnOther on_other = [&step](const std::string& identity) { report_rival(step, identity); };
  auto read_it = [&] { return claim_ledger(step->global, step.migration, step->options.fence, on_other); };
  auto read = co_await retry_ledger(step, read_it);
  if (!read) co_return read.error();
  if (*read) step->claimed_ledgers.insert(std::string{step.migration.object.uid()});
  if (*read && !(**read).all.empty()) co_return std::move(**read);
  if (const auto kept = step->unwritten_ledgers.find(std::string{step.migration.object.uid()});
      kept != step->unwritten_ledgers.end())
    co_return kept->second;
  step.log().warn("ledger is missing, rebuilding it");
  Ledger ledger = *read ? std::move(**read) : Ledger{};
  auto recorded = co_await find_recorded_clusters(step);
  if (!recorded) co_return recorded.error();
  ledger.all = std::move(*recorded);
  ledger.forget_unlisted();
  co_return ledger;
}

Awaitable<OperationResult<>> save_ledger(Step& step, const Ledger& ledger) {
  put_counts(step.migration, ledger, is_active(step.phase()) && step.phase() != phases::validating);
  LedgerChange replace = [&ledger](Ledger& present) { present = ledger; };
  auto write = [&] { return change_ledger(step->global, step.migration, ledger, replace, step->options.fence); };
  co_return co_await write_or_keep(step, ledger, write);
}

Awaitable<OperationResult<>> amend_ledger(Step& step, Ledger& ledger, LedgerChange change) {
  change(ledger);
  auto write = [&] { return change_ledger(step->global, step.migration, ledger, change, step->options.fence); };
  co_return co_await write_or_keep(step, ledger, write);
}

}  // namespace hubferry::migration
