#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/status/migration_view.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"

namespace hubferry::app {

struct StatusWatchOptions {
  std::string ns;                 // empty: all
  std::optional<kube::Key> only;  // one migration; the watch ends with it
  std::string output = "table";
  NamespaceColumn namespaces = NamespaceColumn::where_they_differ;
};

/// Prints migrations as they change. On a terminal the output is redrawn in place, on every event and every second (for
/// durations); at the end it is printed once more, not truncated. Otherwise each change is one line; json and yaml
/// print the changed object. A server that does not answer is reported, also between changes: the informer retries in
/// silence. Output that equals the previous one is not repeated. Lifetime: the constructor's
/// references outlive run(). Executor: one loop.
class StatusWatch {
 public:
  /// `terminal` is called for every redraw: the window may be resized.
  StatusWatch(kube::Api& api, StatusWatchOptions options, kube::Env env, std::function<Terminal()> terminal,
              std::ostream& out);

  /// Runs until `stop` is set, or until the one migration has ended. Returns the exit code: 0; for one migration 1 if
  /// it failed or was deleted before its end, 130 if stopped before its end. Throws std::runtime_error if the server
  /// did not answer for five minutes, or rejected the credential for half a minute.
  async::Awaitable<int> run(async::Event& stop);

 private:
  void on_change(const kube::Key& key, const std::shared_ptr<const kube::Object>& now);
  void print_change(const kube::Key& key, const kube::Object* now);
  [[nodiscard]] std::string change_text(const kube::Key& key, const kube::Object* now) const;
  async::Awaitable<> follow(async::TaskScope& scope);
  async::Awaitable<> tick();
  async::Awaitable<> probe(async::TaskScope& scope);
  /// Absent: the server answers.
  void set_server_error(std::optional<kube::Error> error);
  void draw();
  /// `is_final`: nothing is omitted.
  [[nodiscard]] std::vector<std::string> render(const Terminal& screen, bool is_final) const;
  void print_final();
  /// The one migration; after its deletion as it ended. Null: there is none, or it was deleted before its end.
  [[nodiscard]] std::shared_ptr<const kube::Object> the_one() const;
  async::Awaitable<> read_ledger();

  kube::Api& api_;
  StatusWatchOptions options_;
  kube::Env env_;
  std::function<Terminal()> terminal_;
  std::ostream& out_;
  bool in_place_;
  LiveArea area_;
  kube::Cache<kube::Object> migrations_;
  async::Notify changed_;
  std::map<kube::Key, std::string> printed_;  // the last output for each
  kube::Object ledger_;                       // the ConfigMap of the one migration
  std::int64_t failed_known_ = -1;            // the number of failed clusters when it was read
  std::optional<kube::Error> server_error_;   // why the server does not answer
  std::optional<async::TimePoint> silent_since_;
  bool gave_up_ = false;
  bool is_drawn_ = false;
  std::shared_ptr<const kube::Object> ended_;  // the one migration, once it has ended
  bool over_ = false;
  int code_ = 0;
};

}  // namespace hubferry::app
