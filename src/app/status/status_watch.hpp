#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>

#include "app/status/status_text.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"

namespace hubferry::app {

struct StatusWatchOptions {
  std::string ns;                 // empty: all
  std::optional<kube::Key> only;  // one migration, and the end comes with its end
  std::string output = "table";
  NamespaceColumn namespaces = NamespaceColumn::where_they_differ;
};

/// Follows migrations on the screen. On a terminal the picture changes in place: with every event, and each second
/// for the clocks in it; at the end it is drawn once more, uncut. Elsewhere each change is a line; json and yaml print
/// the changed object. What looks as before is not printed again.
/// Lifetime: what it refers to outlives run(). Executor: one loop.
class StatusWatch {
 public:
  /// `terminal` is asked again for every picture: its window may change.
  StatusWatch(kube::Api& api, StatusWatchOptions options, kube::Env env, std::function<Terminal()> terminal,
              std::ostream& out);

  /// Until `stop` is set, or the one migration has ended. The exit code: 0; for one migration 1 when it failed or is
  /// gone, 130 when stopped before its end.
  async::Awaitable<int> run(async::Event& stop);

 private:
  void on_change(const kube::Key& key, const std::shared_ptr<const kube::Object>& now);
  void print_change(const kube::Key& key, const kube::Object* now);
  [[nodiscard]] std::string change_text(const kube::Key& key, const kube::Object* now) const;
  async::Awaitable<> follow(async::TaskScope& scope);
  async::Awaitable<> tick();
  void draw();
  /// `at_the_end`: nothing is left out.
  [[nodiscard]] std::vector<std::string> picture(const Terminal& screen, bool at_the_end) const;
  void leave_picture();
  async::Awaitable<> read_failures();

  kube::Api& api_;
  StatusWatchOptions options_;
  kube::Env env_;
  std::function<Terminal()> terminal_;
  std::ostream& out_;
  bool in_place_;
  LiveArea area_;
  kube::Cache<kube::Object> migrations_;
  async::Notify changed_;
  std::map<kube::Key, std::string> printed_;  // what was last said of each
  kube::Object lists_;                        // the ConfigMap of the one migration
  std::int64_t failed_known_ = -1;            // how many clusters had failed when it was read
  bool is_drawn_ = false;
  bool over_ = false;
  int code_ = 0;
};

}  // namespace hubferry::app
