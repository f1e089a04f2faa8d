#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/obs/http_types.hpp"

namespace hubferry::obs {

/// Named checks behind /livez, /readyz and /healthz (the old name of livez), answered as kube-apiserver does.
///
/// `?verbose` lists every check, `?exclude=NAME` leaves one out, `/readyz/NAME` asks for one. Reasons are only
/// shown with `?verbose`; they must not contain secrets. Passing is 200, failing is 500.
/// Liveness must not depend on other machines: a restart does not repair those.
/// Thread-safe. Checks are called on the server's thread and must neither block nor touch what lives on another loop:
/// CheckState carries a result from one thread to the other.
class Health {
 public:
  /// nullopt: fine; else the reason why not. An exception counts as a reason.
  using Check = std::function<std::optional<std::string>()>;

  Health();

  /// Throws std::logic_error for a name that is already in use or cannot be part of a URL.
  void add_liveness(std::string name, Check check);
  void add_readiness(std::string name, Check check);

  /// From now on /readyz fails with "stopping".
  void set_stopping() { stopping_->store(true); }

  [[nodiscard]] HttpResponse answer(const HttpRequest& request) const;

  /// For HttpServer. This object must outlive the server.
  [[nodiscard]] HttpHandler handler() const;

 private:
  struct NamedCheck {
    std::string name;
    Check check;
    bool reason_is_public = false;
  };
  using Checks = std::vector<std::shared_ptr<const NamedCheck>>;

  void add(Checks& checks, NamedCheck check);
  static HttpResponse answer_all(const std::string& group, const Checks& checks, const HttpRequest& request);
  static HttpResponse answer_one(const NamedCheck& check, bool verbose);

  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  mutable std::mutex mutex_;
  Checks liveness_;
  Checks readiness_;
};

/// A check result that one thread sets and another reads: `health.add_readiness("caches", state.check())`.
class CheckState {
 public:
  /// Fails with this reason until pass() is called.
  explicit CheckState(std::string reason);

  void pass();
  void fail(std::string reason);
  /// Shares the result; may outlive this object.
  [[nodiscard]] Health::Check check() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hubferry::obs
