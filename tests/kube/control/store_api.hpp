#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::test {

/// Objects in memory behind kube::Api, with a script of what goes wrong: just enough for the tools of a controller.
/// Knows no subresources, no admission, no lists and no watches.
class StoreApi final : public kube::Api {
 public:
  explicit StoreApi(async::Clock& clock) : clock_(clock) {}

  /// What happens to a coming request of this verb, instead of its success.
  struct Fault {
    kube::Verb verb;
    kube::Error error;
    bool carried_out = false;  // the request has its effect, only the answer is lost
    async::Duration delay{0};  // before the answer
  };
  void fail_next(kube::Verb verb, kube::ErrorKind kind, bool carried_out = false, int status = 0) {
    faults_.push_back({verb, {kind, status, {}, "scripted", std::nullopt}, carried_out, {}});
  }
  /// From now on every request waits this long before it does anything.
  void set_latency(async::Duration latency) { latency_ = latency; }
  /// From now on no request is answered.
  void cut_off(bool cut) { cut_off_ = cut; }

  /// Called before a request is carried out: somebody else's write gets in between.
  std::function<void(const kube::Request&)> before;

  void put(const kube::Resource& resource, kube::json::object object) {
    auto& metadata = object["metadata"].get_object();
    if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(++last_uid_);
    metadata["resourceVersion"] = std::to_string(++version_);
    const kube::Key key = kube::Object{object}.key();
    objects_[{resource.plural, key}] = kube::Object{std::move(object)};
  }
  const kube::Object* find(const kube::Resource& resource, const kube::Key& key) const {
    const auto found = objects_.find({resource.plural, key});
    return found == objects_.end() ? nullptr : &found->second;
  }
  void erase(const kube::Resource& resource, const kube::Key& key) { objects_.erase({resource.plural, key}); }
  std::vector<kube::Object> all(const kube::Resource& resource) const {
    std::vector<kube::Object> found;
    for (const auto& [id, object] : objects_)
      if (id.first == resource.plural) found.push_back(object);
    return found;
  }
  [[nodiscard]] std::size_t requests(kube::Verb verb) const {
    return static_cast<std::size_t>(
        std::count_if(log.begin(), log.end(), [&](const auto& r) { return r.verb == verb; }));
  }

  std::vector<kube::Request> log;

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    log.push_back(request);
    if (latency_ > async::Duration{0}) co_await clock_.sleep_for(latency_);
    if (cut_off_) co_await clock_.sleep_until(async::never);
    if (before) before(request);
    for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
      if (fault->verb != request.verb) continue;
      const Fault planned = *fault;
      faults_.erase(fault);
      if (planned.carried_out) static_cast<void>(carry_out(request));
      co_return planned.error;
    }
    co_return carry_out(request);
  }
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource, kube::ListOptions,
                                                      const kube::Decoder&) override {
    co_return error(kube::ErrorKind::unsupported);
  }
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource, kube::WatchOptions,
                                                                           const kube::Decoder&) override {
    co_return error(kube::ErrorKind::unsupported);
  }
  async::Awaitable<kube::Result<kube::json::value>> get_path(std::string) override {
    co_return error(kube::ErrorKind::unsupported);
  }
  [[nodiscard]] std::string_view name() const override { return "store"; }

 private:
  static kube::Error error(kube::ErrorKind kind) { return {kind, 0, {}, "store", std::nullopt}; }

  static void merge(kube::json::object& into, const kube::json::object& patch) {
    for (const auto& field : patch) {
      if (field.value().is_null()) {
        into.erase(field.key());
      } else if (field.value().is_object()) {
        auto& inner = into[field.key()];
        if (!inner.is_object()) inner.emplace_object();
        merge(inner.get_object(), field.value().get_object());
      } else {
        into[field.key()] = field.value();
      }
    }
  }

  kube::Result<kube::Object> carry_out(const kube::Request& request) {
    kube::Key key = request.key;
    if (request.verb == kube::Verb::create) key = kube::Object{request.body.get_object()}.key();
    const auto* current = find(request.resource, key);
    if (request.verb == kube::Verb::create) {
      if (current != nullptr) return error(kube::ErrorKind::already_exists);
      put(request.resource, request.body.get_object());
      return *find(request.resource, key);
    }
    if (current == nullptr && request.verb != kube::Verb::apply) return error(kube::ErrorKind::not_found);
    if (request.verb == kube::Verb::get) return *current;
    if (request.verb == kube::Verb::remove) {
      const kube::Object last = *current;
      erase(request.resource, key);
      return last;
    }
    const kube::Object sent{request.body.get_object()};
    if (current != nullptr && !sent.resource_version().empty() &&
        sent.resource_version() != current->resource_version())
      return error(kube::ErrorKind::conflict);
    kube::json::object next = sent.json();
    if (request.verb != kube::Verb::update && current != nullptr) {
      next = current->json();
      merge(next, sent.json());
    }
    put(request.resource, std::move(next));
    return *find(request.resource, key);
  }

  async::Clock& clock_;
  std::map<std::pair<std::string, kube::Key>, kube::Object> objects_;
  std::deque<Fault> faults_;
  async::Duration latency_{0};
  bool cut_off_ = false;
  std::uint64_t version_ = 0;
  std::uint64_t last_uid_ = 0;
};

}  // namespace hubferry::test
