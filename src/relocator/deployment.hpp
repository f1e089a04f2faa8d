#pragma once

#include <memory>

#include "hubferry/phase/kube_store.hpp"
#include "relocator/slots.hpp"

namespace hubferry::relocator {

namespace json = kube::json;
using async::Awaitable;
using async::Duration;
using kube::Key;
using kube::Object;
using phase::Phase;

/// What the annotations of a ClusterDeployment or DNSZone say.
enum class Stage {
  none,
  outgoing,  // relocating: this is the source, and it moves
  incoming,  // relocating, with the role: this is the destination, and it arrives
  complete,  // relocated: this is the source, and the destination has it
};

struct Relocation {
  Stage stage = Stage::none;
  std::string relocator;
};

/// The presence of a key decides, also with an empty value. `relocated` wins: only it is written after the proof.
Relocation relocation_of(const json::object& object);
inline Relocation relocation_of(const Object& object) {
  return relocation_of(object.json());
}
/// True if Hive's own relocation, not ours, has annotated it.
bool is_moved_by_hive(const Object& object);
/// True if Hive reads this annotation as true.
bool is_annotated_true(const Object& object, const char* key);
/// True if Hive leaves it alone because a user wants that: while it moves, the pause is ours.
bool is_paused_by_user(const Object& object);

/// True if the condition is MoveSuccessful: its phase is over, even if Hive has not finalized it yet.
bool says_successful(const json::object& status);

/// True if the server says that there is no object of this name. Any other 404 may be that of a server that starts, and
/// does not serve the kind yet, or of a proxy: it proves nothing.
bool is_absent(const kube::Error& error, std::string_view name);

/// The annotations of that state, to be merged into an object; null removes one. Hive's own annotation changes in the
/// same write. A ClusterDeployment is paused besides while it is outgoing: Hive's relocation controller clears an
/// annotation for which it finds no ClusterRelocate. Where it moves to is written by Marking only, and kept until the
/// end.
json::object annotations_for(Stage stage, const std::string& relocator, bool pause);
/// The merge patch for annotations.
json::object annotation_patch(json::object annotations);

/// The name of the DNSZone that belongs to a ClusterDeployment of that name.
std::string child_zone_name(const std::string& deployment);
/// Where its DNSZone is; nullopt: Hive does not manage its DNS.
std::optional<Key> child_zone(const Object& deployment);

/// A ClusterDeployment as the handlers see it. Its phase follows from its annotations; where a machine is within one
/// reconcile is in memory only.
struct Deployment : phase::KubeResource {
  Deployment() = default;
  /// In the phase that follows from its annotations.
  explicit Deployment(phase::KubeResource read);

  [[nodiscard]] const Phase& phase() const { return entered_; }
  void set_phase(const Phase& phase) { entered_ = phase; }
  [[nodiscard]] phase::State state(const Phase&) const { return {}; }
  void set_state(const Phase&, const phase::State&) {}
  /// After a write conflict: the slot is kept, the phase is derived anew.
  void carry_from(const Deployment& mine) { slot = mine.slot; }

  [[nodiscard]] Relocation relocation() const { return relocation_of(object); }

  std::shared_ptr<Slot> slot;  // to move to the destination; held until the machine rests
  std::string destination;     // the identity of the hub that Checking has looked at
  std::string relocator;       // through this one
  Object arrived;              // the copy that this machine has created on the destination

 private:
  Phase entered_;
};

}  // namespace hubferry::relocator
