#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hubferry/async/event.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::relocator {

using async::Awaitable;
using kube::Key;

/// Why something is refused or does not work now: a reason of the condition, and a message.
struct Problem {
  std::string reason;
  std::string message;
  /// A user must change something first: retried seldom.
  bool lasting = false;
};

template <typename T>
using OrProblem = boost::system::result<T, Problem>;
[[noreturn]] void throw_exception_from_error(const Problem& problem, const boost::source_location& where);

/// The hub that a kubeconfig Secret leads to.
struct Destination {
  std::shared_ptr<kube::Api> api;
  std::string identity;  // the uid of its namespace kube-system
  std::string version;   // of the Secret
  async::TimePoint verified{};
  std::set<std::string> selector_sync_sets;
  std::optional<async::TimePoint> sync_sets_read;
  /// The ClusterRelocates of its Hive, when it was verified.
  kube::Result<std::vector<kube::Object>> hive_relocates = std::vector<kube::Object>{};
  /// The last copy was released before we came to it: hubferry runs there, too.
  bool releases_copies = false;
};

/// Connections to destinations, by kubeconfig Secret of the source hub (key `kubeconfig`). exec plugins and file
/// references in it are refused. A Secret is read again, and the destination verified, when the last time is some
/// seconds ago; it is not watched.
/// Lifetime: source and env outlive it. Executor: one loop.
class Destinations {
 public:
  Destinations(kube::Api& source, hubs::Connect connect, kube::Env env);

  /// Problems: MissingKubeconfigSecret, NoConnection.
  Awaitable<OrProblem<std::shared_ptr<Destination>>> connect(Key secret);
  /// Whether its address still leads to the same hub, asked now. Problems: NoConnection.
  Awaitable<OrProblem<bool>> is_still_there(std::shared_ptr<Destination> destination);
  /// The names of its SelectorSyncSets, read again when the last time is a minute ago. Errors: of the list.
  Awaitable<kube::Result<std::set<std::string>>> selector_sync_sets(std::shared_ptr<Destination> destination);
  /// The uid of the namespace kube-system of the source hub. Problems: MoveFailed.
  Awaitable<OrProblem<std::string>> source_identity();

 private:
  using Opened = OrProblem<std::shared_ptr<Destination>>;
  /// One that is being verified, for all that wait for it.
  struct Opening {
    async::Event done;
    std::optional<Opened> result;  // none: the caller that verified it was cancelled
  };

  Awaitable<Opened> open_for_all(Key secret);
  Awaitable<Opened> read_and_open(Key secret);
  Awaitable<Opened> open(Key key, kube::Object secret);

  kube::Api& source_;
  hubs::Connect connect_;
  kube::Env env_;
  std::map<Key, std::shared_ptr<Destination>> known_;
  std::map<Key, std::shared_ptr<Opening>> opening_;
  std::string source_identity_;
};

}  // namespace hubferry::relocator
