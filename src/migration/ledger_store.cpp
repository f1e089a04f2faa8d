#include "migration/ledger_store.hpp"

#include "hubferry/kube/edit.hpp"
#include "migration/retry.hpp"
#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

Ledger data_of(const kube::Object& config_map) {
  const auto* data = config_map.find({"data"});
  return data != nullptr && data->is_object() ? ledger_from_data(data->get_object()) : Ledger{};
}

OperationError foreign_ledger(const Migration& migration) {
  return OperationError::foreign_config_map(
      "ConfigMap " + kube::to_string(migration.object.key()) +
      " does not belong to this migration: rename or delete it, or give the migration another name");
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

/// Retried without a deadline. Rollbacking and Cleaning also retry errors that only a person can resolve.
template <typename Operation>
std::invoke_result_t<Operation&> retry_ledger(Step& step, Operation operation) {
  const auto time = step.time().unlimited();
  async::Backoff backoff{
      {.first = std::chrono::seconds{1}, .most = std::chrono::minutes{1}}, step.clock(), step->env.random};
  auto result = co_await retry(step, time, operation);
  while (!result && survives_deletion(step.phase())) {
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
  if (!kube::is_owned_by(*read, migration.object.uid())) co_return foreign_ledger(migration);
  co_return std::optional<Ledger>{data_of(*read)};
}

Awaitable<OperationResult<>> change_ledger(kube::Api& api, const Migration& migration, Ledger known,
                                           LedgerChange change) {
  bool is_foreign = false;
  auto mutate = [&](json::object& object) {
    const kube::Object present{object};
    is_foreign = !present.uid().empty() && !kube::is_owned_by(present, migration.object.uid());
    if (is_foreign) return false;
    const bool changed = claim(object, migration);
    auto ledger = data_of(present);
    if (ledger.all.empty()) ledger = known;
    change(ledger);
    auto data = to_data(ledger);
    if (object["data"] == data) return changed;
    object["data"] = std::move(data);
    return true;
  };
  auto written = co_await kube::create_or_patch(api, kube::resources::config_maps, migration.object.key(), mutate);
  if (is_foreign) co_return foreign_ledger(migration);
  if (!written) co_return OperationError{written.error()};
  co_return OperationResult<>{};
}

Awaitable<OperationResult<Ledger>> load_ledger(Step& step) {
  auto read_it = [&step] { return read_ledger(step->global, step.migration); };
  auto read = co_await retry_ledger(step, read_it);
  if (!read) co_return read.error();
  if (*read && !(**read).all.empty()) co_return std::move(**read);
  step.log().warn("ledger is missing, rebuilding it");
  Ledger ledger = *read ? std::move(**read) : Ledger{};
  const auto spec = step.migration.spec();
  if (spec.clusters) {
    ledger.all = *spec.clusters;
    co_return ledger;
  }
  auto resolve = [&](hubagent::SourceHub& hub) {
    return hub.resolve_placement(spec.placement.value_or(std::string{}));
  };
  auto resolved = co_await on_source(step, resolve);
  if (!resolved) co_return resolved.error();
  ledger.all = std::move(*resolved);
  co_return ledger;
}

Awaitable<OperationResult<>> save_ledger(Step& step, const Ledger& ledger) {
  put_counts(step.migration, ledger, is_active(step.phase()) && step.phase() != phases::validating);
  LedgerChange replace = [&ledger](Ledger& present) { present = ledger; };
  auto write = [&] { return change_ledger(step->global, step.migration, ledger, replace); };
  co_return co_await retry_ledger(step, write);
}

Awaitable<OperationResult<>> amend_ledger(Step& step, Ledger& ledger, LedgerChange change) {
  change(ledger);
  auto write = [&] { return change_ledger(step->global, step.migration, ledger, change); };
  co_return co_await retry_ledger(step, write);
}

}  // namespace hubferry::migration
