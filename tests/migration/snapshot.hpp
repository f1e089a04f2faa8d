#pragma once

#include <map>
#include <string>

#include "hubferry/kube/api.hpp"

namespace hubferry::migration::test {

/// All objects of a server, by "kind namespace/name", without what changes by itself: versions, times, leases.
using Snapshot = std::map<std::string, std::string>;

/// The kinds that a server serves and lists; `lasting` leaves out those that change by themselves.
enum class Kinds { all, lasting };
async::Awaitable<std::vector<kube::Resource>> find_kinds(kube::Api& api, Kinds which);

/// What of an object is the same on every server and at every time.
std::string essence(const kube::Object& object);

/// Lists all lasting kinds of a server.
async::Awaitable<Snapshot> take_snapshot(kube::Api& api);

/// The same without the entries that `leave_out` names by a part of their key.
Snapshot without(Snapshot snapshot, const std::vector<std::string>& leave_out);

/// True if the entry belongs to the cluster: by its name, its namespace, or a part of a cluster-scoped name.
bool belongs_to(const std::string& key, const std::string& cluster);

/// One line for each difference; empty when there is none.
std::string differences(const Snapshot& expected, const Snapshot& actual);

}  // namespace hubferry::migration::test
