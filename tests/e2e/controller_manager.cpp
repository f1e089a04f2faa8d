#include "controller_manager.hpp"

#include <fstream>
#include <sstream>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "migration/snapshot.hpp"

namespace hubferry::test {

using async::Awaitable;
using kube::Object;
using kube::resources::certificate_signing_requests;
using kube::resources::namespaces;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

// A test's stand-in may look again now and then; the program under test never does.
constexpr auto pause = 300ms;
// Looking for orphans means reading everything there is.
constexpr auto long_pause = 5s;

std::string read_file(const std::string& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

ControllerManager::ControllerManager(kube::Api& api, std::string keys, kube::Env env)
    : api_(api), keys_(std::move(keys)), env_(std::move(env)) {}

Awaitable<> ControllerManager::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(sign_requests());
    scope.spawn(empty_namespaces());
    scope.spawn(collect_orphans());
    co_return;
  };
  co_await async::with_scope(body);
}

Awaitable<> ControllerManager::sign_requests() {
  for (;;) {
    kube::ListOptions all;
    auto listed = co_await api_.list_all(certificate_signing_requests, all);
    if (listed) {
      for (const auto& request : *listed)
        if (kube::is_condition_true(request, "Approved") && request.string_at({"status", "certificate"}).empty())
          co_await sign(request);
    }
    co_await env_.clock.sleep_for(pause);
  }
}

Awaitable<> ControllerManager::sign(Object request) {
  const auto base = folder_.path() + "/" + std::string{request.name()};
  std::ofstream{base + ".csr"} << kube::decode_base64(request.string_at({"spec", "request"})).value_or("");
  std::ofstream{base + ".ext"} << "extendedKeyUsage=clientAuth\n";
  Process signing{{"openssl", "x509", "-req", "-in", base + ".csr", "-CA", keys_ + "/ca.crt", "-CAkey",
                   keys_ + "/ca.key", "-CAcreateserial", "-CAserial", base + ".serial", "-days", "1", "-extfile",
                   base + ".ext", "-out", base + ".crt"}};
  if (signing.wait() != 0) throw std::runtime_error("openssl cannot sign: " + signing.err());
  json::object status{{"certificate", kube::encode_base64(read_file(base + ".crt"))}};
  json::object patch{{"status", std::move(status)}};
  (void)co_await api_.merge_patch(certificate_signing_requests, request.key(), patch, "status");
}

Awaitable<> ControllerManager::empty_namespaces() {
  for (;;) {
    kube::ListOptions all;
    auto listed = co_await api_.list_all(namespaces, all);
    if (listed) {
      for (const auto& space : *listed)
        if (space.is_being_deleted()) co_await empty(std::string{space.name()});
    }
    co_await env_.clock.sleep_for(pause);
  }
}

Awaitable<> ControllerManager::empty(std::string ns) {
  auto kinds = co_await migration::test::find_kinds(api_, migration::test::Kinds::all);
  std::size_t left = 0;
  for (const auto& kind : kinds) {
    if (!kind.namespaced) continue;
    kube::ListOptions inside;
    inside.ns = ns;
    auto listed = co_await api_.list_all(kind, inside);
    if (!listed) continue;
    for (const auto& object : *listed) {
      (void)co_await api_.remove(kind, object.key());
      auto rest = co_await api_.get(kind, object.key());
      left += rest ? 1U : 0U;
    }
  }
  if (left > 0) co_return;
  auto space = co_await api_.get(namespaces, kube::Key{{}, ns});
  if (!space) co_return;
  json::object emptied = space->json();
  emptied["spec"].as_object()["finalizers"] = json::array{};
  (void)co_await api_.update(namespaces, std::move(emptied), "finalize");
}

/// ConfigMaps and Secrets only: nothing else of ours has an owner.
Awaitable<> ControllerManager::collect_orphans() {
  for (;;) {
    co_await env_.clock.sleep_for(long_pause);
    std::set<std::string> alive;
    auto kinds = co_await migration::test::find_kinds(api_, migration::test::Kinds::all);
    bool complete = true;
    std::vector<std::pair<kube::Resource, Object>> owned;
    for (const auto& kind : kinds) {
      kube::ListOptions all;
      auto listed = co_await api_.list_all(kind, all);
      complete = complete && listed;
      if (!listed) continue;
      for (const auto& object : *listed) {
        alive.emplace(object.uid());
        const bool ownable = kind == kube::resources::config_maps || kind == kube::resources::secrets;
        if (ownable && object.find({"metadata", "ownerReferences"}) != nullptr) owned.emplace_back(kind, object);
      }
    }
    if (!complete) continue;
    for (const auto& [kind, object] : owned) {
      bool has_owner = false;
      for (const auto& owner : object.find({"metadata", "ownerReferences"})->as_array())
        has_owner = has_owner || alive.contains(std::string{kube::string_at(owner.as_object(), {"uid"})});
      if (!has_owner) (void)co_await api_.remove(kind, object.key());
    }
  }
}

}  // namespace hubferry::test
