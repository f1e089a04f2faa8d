#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::hubagent {

/// The writes to a hub that may still take effect. They outlive the connection over which they were sent.
/// Executor: one loop.
class OpenWrites {
 public:
  struct Write {
    kube::Key key;
    std::string migration;  // the label of what it writes
    async::TimePoint until;
  };

  void remember(Write write) { writes_.push_back(std::move(write)); }
  /// When none of those to which `concerns` applies can take effect any more.
  async::TimePoint settled_at(const std::function<bool(const Write&)>& concerns, async::TimePoint now);

 private:
  std::list<Write> writes_;
};

/// A hub's Api that remembers the writes that may still take effect although nobody waits for them: those whose caller
/// was cancelled, and those without an answer. Without that, an object whose creation was slow appears after the
/// rollback that was to delete it, and stays for ever.
///
/// It also takes no 404 for the absence of an object, or of a kind, that does not prove it: absence.hpp.
///
/// A cancelled write has `grace` to be answered before the cancellation passes: nearly all are.
/// Executor: one loop. Lifetime: outlives its requests.
class SettlingApi final : public kube::Api {
 public:
  SettlingApi(std::shared_ptr<kube::Api> inner, std::shared_ptr<OpenWrites> open, async::Clock& clock);

  /// When no unanswered write to an object of this name, or in the namespace of this name, can take effect any more.
  [[nodiscard]] async::TimePoint settled_at(const std::string& name);
  /// The same for objects of a migration, and for the namespace `ns`.
  [[nodiscard]] async::TimePoint own_objects_settled_at(const std::string& migration, const std::string& ns);

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override;
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                                      const kube::Decoder& decoder) override;
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                           kube::WatchOptions options,
                                                                           const kube::Decoder& decoder) override;
  async::Awaitable<kube::Result<kube::json::value>> get_path(std::string path) override;
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  /// What an error says about the object of this name, or about a list: absent, by a 404 that names the object, or if
  /// the hub says that it does not serve the kind.
  async::Awaitable<kube::Error> judged(kube::Resource resource, std::string name, kube::Error answer);

  std::shared_ptr<kube::Api> inner_;
  std::shared_ptr<OpenWrites> open_;
  async::Clock& clock_;
  std::optional<kube::json::value> groups_;  // the last answer to "/apis"
  async::TimePoint groups_read_{};
};

}  // namespace hubferry::hubagent
