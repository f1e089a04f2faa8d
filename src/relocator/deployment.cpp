#include "relocator/deployment.hpp"

#include <array>
#include <cstdint>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::relocator {

namespace {

constexpr std::size_t longest_zone_name = 63;
constexpr std::size_t kept_of_long_names = 49;

const json::value* annotation_of(const json::object& object, std::string_view key) {
  return kube::find(object, {"metadata", "annotations", key});
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string{value.get_string()} : std::string{};
}

/// FNV-1a, 32 bits, as eight hexadecimal digits.
std::string hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const unsigned char c : text) hash = (hash ^ c) * 16777619U;
  std::string digits;
  for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash >> shift) & 15U];
  return digits;
}

Phase derived_phase(const Object& object, const json::object& status) {
  switch (relocation_of(object).stage) {
    case Stage::complete:
      if (!object.is_being_deleted()) return phases::finishing;
      return says_successful(status) ? phases::gone : phases::deleting;
    case Stage::incoming:
      return phases::releasing;
    case Stage::none:
    case Stage::outgoing:
      break;
  }
  return phases::matching;
}

}  // namespace

Relocation relocation_of(const json::object& object) {
  if (const auto* relocated = annotation_of(object, names::relocated)) return {Stage::complete, text_of(*relocated)};
  const auto* relocating = annotation_of(object, names::relocating);
  if (relocating == nullptr) return {};
  const auto* role = annotation_of(object, names::role);
  const bool incoming = role != nullptr && text_of(*role) == names::incoming;
  return {incoming ? Stage::incoming : Stage::outgoing, text_of(*relocating)};
}

bool is_moved_by_hive(const Object& object) {
  return relocation_of(object).stage == Stage::none &&
         annotation_of(object.json(), ocm::names::hive_relocate_annotation) != nullptr;
}

bool is_annotated_true(const Object& object, const char* key) {
  // As Go's strconv.ParseBool reads it.
  const auto value = object.annotation(key);
  return value == "true" || value == "True" || value == "TRUE" || value == "t" || value == "T" || value == "1";
}

bool is_paused_by_user(const Object& object) {
  return relocation_of(object).stage == Stage::none && is_annotated_true(object, ocm::names::hive_pause_annotation);
}

bool is_absent(const kube::Error& error, std::string_view name) {
  return error.kind == kube::ErrorKind::not_found && error.reason == "NotFound" &&
         error.message.find("\"" + std::string{name} + "\" not found") != std::string::npos;
}

bool says_successful(const json::object& status) {
  const auto* present = kube::find_condition_in_status(status, names::condition);
  return present != nullptr && kube::string_at(*present, {"reason"}) == reasons::successful;
}

json::object annotations_for(Stage stage, const std::string& relocator, bool pause) {
  json::object wanted;
  const bool moves = stage == Stage::outgoing || stage == Stage::incoming;
  wanted[names::relocating] = moves ? json::value(relocator) : json::value();
  wanted[names::role] = stage == Stage::incoming ? json::value(names::incoming) : json::value();
  wanted[names::relocated] = stage == Stage::complete ? json::value(relocator) : json::value();
  static constexpr std::array<const char*, 4> hive_states{"", "/outgoing", "/incoming", "/complete"};
  wanted[ocm::names::hive_relocate_annotation] =
      stage == Stage::none ? json::value() : json::value(relocator + hive_states.at(static_cast<std::size_t>(stage)));
  if (stage == Stage::none || stage == Stage::incoming) wanted[names::relocating_to] = nullptr;
  if (pause) wanted[ocm::names::hive_pause_annotation] = stage == Stage::outgoing ? json::value("true") : json::value();
  return wanted;
}

json::object annotation_patch(json::object annotations) {
  json::object metadata;
  metadata["annotations"] = std::move(annotations);
  json::object patch;
  patch["metadata"] = std::move(metadata);
  return patch;
}

std::string child_zone_name(const std::string& deployment) {
  auto name = deployment + "-zone";
  if (name.size() <= longest_zone_name) return name;
  return deployment.substr(0, kept_of_long_names) + "-" + hash_of(deployment) + "-zone";
}

std::optional<Key> child_zone(const Object& deployment) {
  const auto* managed = deployment.find({"spec", "manageDNS"});
  if (managed == nullptr || !managed->is_bool() || !managed->get_bool()) return std::nullopt;
  return Key{std::string{deployment.ns()}, child_zone_name(std::string{deployment.name()})};
}

Deployment::Deployment(phase::KubeResource read)
    : phase::KubeResource(std::move(read)), entered_(derived_phase(object, status)) {}

}  // namespace hubferry::relocator
