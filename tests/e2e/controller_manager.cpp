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

// A test's stand-in may poll; the program under test never does.
constexpr auto pause = 300ms;
constexpr auto long_pause = 2s;

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
  const auto base = folder_.file(std::string{request.name()});
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

Awaitable<bool> ControllerManager::is_gone(std::string ns, json::object owner) {
  const std::string version{kube::string_at(owner, {"apiVersion"})};
  const auto slash = version.find('/');
  kube::Resource kind;
  if (slash != std::string::npos) kind.group = version.substr(0, slash);
  kind.version = slash == std::string::npos ? version : version.substr(slash + 1);
  kind.kind = kube::string_at(owner, {"kind"});
  for (const char letter : kind.kind) kind.plural += static_cast<char>(std::tolower(letter));
  kind.plural += "s";
  auto found = co_await api_.get(kind, kube::Key{ns, std::string{kube::string_at(owner, {"name"})}});
  if (found) co_return found->uid() != kube::string_at(owner, {"uid"});
  co_return found.error().kind == kube::ErrorKind::not_found;
}

/// ConfigMaps and Secrets only: nothing else of ours has an owner reference.
Awaitable<> ControllerManager::collect_orphans() {
  for (;;) {
    co_await env_.clock.sleep_for(long_pause);
    for (const auto& kind : {kube::resources::config_maps, kube::resources::secrets}) {
      kube::ListOptions all;
      auto listed = co_await api_.list_all(kind, all);
      if (!listed) continue;
      for (const auto& object : *listed) {
        const auto* owners = object.find({"metadata", "ownerReferences"});
        if (owners == nullptr || !owners->is_array() || owners->get_array().empty()) continue;
        auto gone = co_await is_gone(std::string{object.ns()}, owners->get_array()[0].as_object());
        if (gone) (void)co_await api_.remove(kind, object.key());
      }
    }
  }
}

}  // namespace hubferry::test
