#pragma once

#include <list>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/hubs/troubles.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::hubs {

/// The connection to a hub, of which Troubles says what is wrong: no answer, none for a while, the credential is
/// rejected, the server is overloaded. Any other answer ends the trouble.
class ObservedApi final : public kube::Api {
 public:
  /// `credential`: where it comes from, as in "Secret hub1/hub-kubeconfig".
  ObservedApi(std::shared_ptr<kube::Api> inner, std::string hub, std::string credential, Troubles& troubles,
              async::Clock& clock);

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override;
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                                      const kube::Decoder& decoder) override;
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                           kube::WatchOptions options,
                                                                           const kube::Decoder& decoder) override;
  async::Awaitable<kube::Result<kube::json::value>> get_path(std::string path) override;
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

  /// Reports requests that are not answered for a while, until cancelled.
  async::Awaitable<> watch_silence();
  /// The connection is replaced: it no longer says anything about the hub.
  void retire() { retired_ = true; }

 private:
  using Open = std::list<async::TimePoint>;
  /// A request from its start to its answer, or until it is cancelled.
  class Pending;

  template <typename Result>
  Result observed(Result result);
  void observe(const kube::Error& error);
  void answered();

  std::shared_ptr<kube::Api> inner_;
  std::string hub_;
  std::string credential_;
  Troubles& troubles_;
  async::Clock& clock_;
  Open open_;  // when they began, the oldest first
  async::Notify begun_;
  bool silent_ = false;
  bool retired_ = false;
};

}  // namespace hubferry::hubs
