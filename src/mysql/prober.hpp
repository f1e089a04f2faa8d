#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/mysql/exporter.hpp"
#include "mysql/gtid.hpp"
#include "mysql/volume.hpp"

namespace hubferry::mysql {

struct ProberOptions {
  async::Duration interval = std::chrono::seconds{10};
  async::Duration timeout = std::chrono::seconds{5};  // of one probe; below the interval
  unsigned strikes = 3;                               // bad probes in a row that count as a failure
};

/// What a pass may take from a probe until it asks the primary about an absent replica.
inline constexpr async::Duration absence_margin = std::chrono::seconds{5};

/// What the primary itself said about a replica that gave no answer: it was not connected, so it has nothing beyond
/// `position`, the primary's own at that time.
struct Absence {
  GtidPosition position;
  async::TimePoint since{};  // the first time in a row
  async::TimePoint at{};     // the last time
};

/// The level of one server: what the last probes say, not what happened.
struct Health {
  Verdict verdict = Verdict::unknown;
  unsigned strikes = 0;      // unreachable or read-only this many times in a row; `unknown` neither counts nor resets
  unsigned unreachable = 0;  // this many times in a row without an answer; read-only resets it too
  async::TimePoint unreachable_since{};
  Sample sample;  // of the last answer
  /// The last lag that the server reported, and when: it is missing exactly when the primary is gone.
  std::optional<double> last_lag;
  async::TimePoint last_lag_at{};
  async::TimePoint last_strike_at{};
  /// When the last probe began that found it writable; nothing: none did, since this process started.
  std::optional<async::TimePoint> last_writable_at;
  std::optional<Absence> absence;                // until it answers again
  std::optional<async::TimePoint> waited_since;  // see Prober::waited_since()
  std::optional<Volume> volume;                  // by SQL: no series has it
  bool is_volume_full = false;
  std::optional<async::TimePoint> volume_asked_at;
  std::string stranger_at;  // the address at which another server was found, by SQL
};

struct ProbeTarget {
  std::string pod;
  std::string address;  // empty: it has none, which counts as no answer
  std::uint32_t server_id = 0;
};

/// Probes the exporters of all clusters, each on its own timer, and publishes levels for the reconcile loop to read.
/// After a restart the counts begin at zero: a failover comes later then, never wrongly.
/// Executor: one loop. Lifetime: outlives run().
class Prober {
 public:
  Prober(Exporter& exporter, ProberOptions options, kube::Env env, std::function<void(const kube::Key&)> changed);

  /// Probes these servers from now on. A primary other than before begins without strikes, and is probed at once.
  void watch(const kube::Key& cluster, std::vector<ProbeTarget> targets, const std::string& primary,
             async::Duration lag_limit);
  void forget(const kube::Key& cluster);
  /// Probes soon: something was changed that the next probe will show.
  void poke(const kube::Key& cluster);

  /// Notifies after the next probes even if they show no change.
  void notify_after_probes(const kube::Key& cluster);

  /// Remembers what the primary said about a replica whose probes get no answer.
  void set_absent(const kube::Key& cluster, const std::string& pod, GtidPosition position, async::TimePoint at);
  void clear_absent(const kube::Key& cluster, const std::string& pod);

  /// Since when a failover has waited for this server; from now on if it has not. After a restart of this process the
  /// wait begins again, as the counts do.
  async::TimePoint waited_since(const kube::Key& cluster, const std::string& pod);
  void clear_waits(const kube::Key& cluster);

  /// What the server said about its volume; nothing if it cannot tell.
  void set_volume(const kube::Key& cluster, const std::string& pod, std::optional<Volume> volume, async::TimePoint at);

  /// It has answered by other means: it is neither absent nor waited for.
  void set_answered(const kube::Key& cluster, const std::string& pod);
  /// Another server answers at this address, by SQL: probes there count as no answer. Empty: it answers itself.
  void set_stranger(const kube::Key& cluster, const std::string& pod, const std::string& address);

  /// True: the last probes got no answer from any server, so they say nothing about one of them.
  [[nodiscard]] bool is_silent(const kube::Key& cluster) const;
  /// What is known of a server; a Health without a verdict if nothing is.
  [[nodiscard]] Health health(const kube::Key& cluster, const std::string& pod) const;
  [[nodiscard]] const ProberOptions& options() const { return options_; }
  [[nodiscard]] std::size_t clusters() const { return clusters_.size(); }

  async::Awaitable<> run();

 private:
  struct Watched {
    std::vector<ProbeTarget> targets;
    std::string primary;
    async::Duration lag_limit{};
    std::map<std::string, Health> health;
    async::Notify wake;
    bool forgotten = false;
    unsigned silent_rounds = 0;  // in a row, in which no server answered
    bool notifies = false;       // after the next probes
  };
  using Pointer = std::shared_ptr<Watched>;

  async::Awaitable<> follow(kube::Key cluster, Pointer watched);
  async::Awaitable<> probe_all(kube::Key cluster, Pointer watched);
  void notice_silence(Watched& watched);
  Health* find(const kube::Key& cluster, const std::string& pod);
  async::Awaitable<> probe(ProbeTarget target, Pointer watched, async::TimePoint deadline, bool& changed);

  Exporter& exporter_;
  ProberOptions options_;
  kube::Env env_;
  std::function<void(const kube::Key&)> changed_;
  std::map<kube::Key, Pointer> clusters_;
  std::vector<kube::Key> unstarted_;
  async::Notify started_;
  obs::Family<obs::Counter>& probes_;
  obs::Histogram& lateness_;
};

}  // namespace hubferry::mysql
