#include "app/migration_checklist.hpp"

#include <sstream>

#include "hubferry/phase/render.hpp"
#include "migration/phases.hpp"

namespace hubferry::app {

namespace {

/// For a definition that is only looked at: nothing is ever asked of it.
class NoServer final : public kube::Api {
 public:
  kube::Awaitable<kube::Result<kube::Object>> call(kube::Request) override { co_return kube::Error{}; }
  kube::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource, kube::ListOptions, const kube::Decoder&) override {
    co_return kube::Error{};
  }
  kube::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource, kube::WatchOptions,
                                                                          const kube::Decoder&) override {
    co_return kube::Error{};
  }
  kube::Awaitable<kube::Result<kube::json::value>> get_path(std::string) override { co_return kube::Error{}; }
  [[nodiscard]] std::string_view name() const override { return "none"; }
};

/// The controller's phases and steps.
struct Steps {
  NoServer server;
  async::RealClock clock;
  phase::KubeStore store{server, migration::managed_cluster_migrations};
  migration::Definition definition;

  Steps() { migration::define(definition, store, clock); }
};

}  // namespace

std::string migration_checklist(const MigrationView& migration, bool brief) {
  static const Steps steps;
  std::istringstream lines{phase::render_checklist(steps.definition, {migration.phase, migration.states})};
  std::string text;
  bool unfolded = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_phase = line.starts_with('[');
    const char mark = is_phase ? line[1] : ' ';
    const bool is_pointless = is_phase && mark == ' ' && line.find(migration::phases::rollbacking) != std::string::npos;
    if (is_phase) unfolded = !is_pointless && mark != ' ' && !(brief && mark == 'x');
    if (is_phase ? !is_pointless : unfolded) text += line + "\n";
  }
  return text;
}

}  // namespace hubferry::app
