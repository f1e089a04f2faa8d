#pragma once

#include "hubferry/kube/resource.hpp"

/// What users and other controllers see of a relocation.
namespace hubferry::relocator {

/// ClusterRelocator: moves the ClusterDeployments that its selector matches to another Hive.
inline const kube::Resource cluster_relocators{"hive.openshift.io", "v1", "clusterrelocators", "ClusterRelocator",
                                               false};

namespace names {

// Annotations of ClusterDeployments and their DNSZones. The value is the relocator's name; the key alone decides.
/// On the source while it moves; on the destination, together with the role, until it has arrived.
inline constexpr const char* relocating = "hive.openshift.io/relocating";
/// On the source once the destination has it: from then on its finalizer does not deprovision.
inline constexpr const char* relocated = "hive.openshift.io/relocated";
inline constexpr const char* role = "hive.openshift.io/relocation-role";
inline constexpr const char* incoming = "incoming";
/// On the source while it moves, ClusterDeployment only: the hub that it moves to (the uid of its namespace
/// kube-system). Relocator and Secret may lead elsewhere meanwhile, and that hub may have the copy.
inline constexpr const char* relocating_to = "hubferry.io/relocating-to";
/// On the destination: the hub that it came from (the uid of its namespace kube-system). It is not moved back there.
/// The same key is a label of everything else that was copied: what lacks it is not ours to change.
inline constexpr const char* relocated_from = "hubferry.io/relocated-from";
/// On the destination: that hub knows of the arrival. Before, it is not moved on: if the copy were gone, a successor
/// there would copy it again.
inline constexpr const char* confirmed = "hubferry.io/relocation-confirmed";

/// The condition of a ClusterDeployment.
inline constexpr const char* condition = "RelocationFailed";

}  // namespace names

/// Reasons of the condition RelocationFailed.
namespace reasons {

// Status Unknown
inline constexpr const char* initialized = "Initialized";
// Status False
inline constexpr const char* no_match = "NoMatchingRelocators";
inline constexpr const char* successful = "MoveSuccessful";
inline constexpr const char* sync_sets_missing = "SelectorSyncSetsMissing";  // a warning: the move continues
// Status True
inline constexpr const char* multiple_matches = "MultipleMatchingRelocators";
inline constexpr const char* missing_secret = "MissingKubeconfigSecret";
inline constexpr const char* no_connection = "NoConnection";
inline constexpr const char* mismatch = "ClusterDeploymentMismatch";
inline constexpr const char* move_failed = "MoveFailed";
inline constexpr const char* abort_blocked = "AbortBlocked";
inline constexpr const char* same_hub = "DestinationIsSource";
inline constexpr const char* return_refused = "ReturnRefused";
inline constexpr const char* protected_delete = "ProtectedDelete";
inline constexpr const char* not_installed = "NotInstalled";
inline constexpr const char* unconfirmed = "ArrivalUnconfirmed";
inline constexpr const char* hive_relocate = "HiveClusterRelocateMatches";

}  // namespace reasons

/// Phases of one ClusterDeployment. None is stored: they follow from its annotations.
namespace phases {

inline constexpr const char* matching = "Matching";    // which relocator matches it?
inline constexpr const char* checking = "Checking";    // can it move, and is it there already?
inline constexpr const char* marking = "Marking";      // annotate ClusterDeployment and DNSZone: Hive pauses
inline constexpr const char* copying = "Copying";      // everything to the destination, the ClusterDeployment last
inline constexpr const char* finishing = "Finishing";  // annotate as relocated: its deletion does not deprovision
inline constexpr const char* deleting = "Deleting";    // delete it from the source
inline constexpr const char* aborting = "Aborting";    // back, unless the destination has it
inline constexpr const char* releasing = "Releasing";  // on the destination: it has arrived, Hive may work
inline constexpr const char* idle = "Idle";            // nothing to do
inline constexpr const char* gone = "Gone";            // it is at its destination; Hive finalizes the source

}  // namespace phases
}  // namespace hubferry::relocator
