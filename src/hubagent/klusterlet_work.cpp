#include "hubagent/klusterlet_work.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

/// Views into the bytes being decoded.
struct KlusterletWork::Draft : kube::Projected {
  struct Manifest {
    std::string_view kind;
    std::string_view name;
  };
  struct Config {
    std::string_view strategy;
  };
  struct Condition {
    std::string_view type;
    std::string_view status;
    std::optional<std::int64_t> observed;
  };

  std::int64_t generation = 0;
  bool has_work_agent = false;
  std::vector<Manifest> manifests;
  std::vector<Config> configs;
  std::vector<Condition> conditions;
};

namespace {

using WorkDraft = KlusterletWork::Draft;

kube::Schema<WorkDraft> work_schema() {
  kube::Schema<WorkDraft::Manifest> manifest;
  manifest.text({"kind"}, &WorkDraft::Manifest::kind).text({"metadata", "name"}, &WorkDraft::Manifest::name);
  kube::Schema<WorkDraft::Config> config;
  config.text({"updateStrategy", "type"}, &WorkDraft::Config::strategy);
  kube::Schema<WorkDraft::Condition> condition;
  condition.text({"type"}, &WorkDraft::Condition::type)
      .text({"status"}, &WorkDraft::Condition::status)
      .integer({"observedGeneration"}, &WorkDraft::Condition::observed);
  const auto note_agent = [](WorkDraft& work, std::string_view finalizer) {
    work.has_work_agent |= finalizer == ocm::names::work_cleanup_finalizer;
  };
  kube::Schema<WorkDraft> schema;
  schema.integer({"metadata", "generation"}, &WorkDraft::generation)
      .texts({"metadata", "finalizers"}, note_agent)
      .objects({"spec", "workload", "manifests"}, &WorkDraft::manifests, manifest)
      .objects({"spec", "manifestConfigs"}, &WorkDraft::configs, config)
      .objects({"status", "conditions"}, &WorkDraft::conditions, condition);
  return schema;
}

}  // namespace

KlusterletWork::KlusterletWork(const Draft& draft)
    : generation_(draft.generation), has_work_agent_(draft.has_work_agent) {
  for (const auto& condition : draft.conditions) {
    if (condition.type != "Applied") continue;
    applied_ = condition.status == "True";
    observed_ = condition.observed;
  }
  // With ReadOnly the agent reports the manifests as applied, but only compares them.
  read_only_ = std::ranges::any_of(draft.configs, [](const auto& config) { return config.strategy == "ReadOnly"; });
  for (const auto& manifest : draft.manifests)
    if (manifest.kind == "Secret") secrets_.emplace_back(manifest.name);
}

bool KlusterletWork::is_applied_since(std::int64_t generation) const {
  return applied_ && (!observed_ || *observed_ >= generation);
}

bool KlusterletWork::brings_secret(const std::string& name) const {
  return std::ranges::find(secrets_, name) != secrets_.end();
}

const kube::Decoder& klusterlet_work_decoder() {
  static const kube::ProjectionDecoder<KlusterletWork> decoder{work_schema()};
  return decoder;
}

std::shared_ptr<const KlusterletWork> klusterlet_work_of(const kube::Object* work) {
  if (work == nullptr) return nullptr;
  const auto decoded = klusterlet_work_decoder().from_object(*work);
  // An absent work counts as delivered: one that is here must never be taken for that.
  if (!decoded || decoded->object == nullptr) throw std::logic_error{"a ManifestWork without a name"};
  return std::static_pointer_cast<const KlusterletWork>(decoded->object);
}

}  // namespace hubferry::hubagent
