#pragma once

#include <functional>
#include <iosfwd>
#include <map>
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
  /// it failed or was deleted, 130 if stopped before its end.
  async::Awaitable<int> run(async::Event& stop);

 private:
  void on_change(const kube::Key& key, const std::shared_ptr<const kube::Object>& now);
  void print_change(const kube::Key& key, const kube::Object* now);
  [[nodiscard]] std::string change_text(const kube::Key& key, const kube::Object* now) const;
  async::Awaitable<> follow(async::TaskScope& scope);
  async::Awaitable<> tick();
  async::Awaitable<> probe();
  void set_server_problem(const std::string& problem);
  void draw();
  /// `is_final`: nothing is omitted.
  [[nodiscard]] std::vector<std::string> render(const Terminal& screen, bool is_final) const;
  void print_final();
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
  std::string server_problem_;                // why the server does not answer; empty: it does
  std::optional<async::TimePoint> silent_since_;
  bool is_drawn_ = false;
  bool over_ = false;
  int code_ = 0;
};

}  // namespace hubferry::app
