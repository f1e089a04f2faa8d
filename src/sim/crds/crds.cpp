#include "hubferry/sim/crds.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/yaml.hpp"
#include "sim/crds/embedded.hpp"

namespace hubferry::sim {

namespace {

constexpr auto establish_timeout = std::chrono::seconds{60};

std::vector<kube::json::object> read_embedded() {
  std::vector<kube::json::object> all;
  for (const auto& file : embedded_crds())
    for (auto& document : kube::parse_yaml_documents(file.content, std::string{file.name}))
      if (document.is_object() &&
          kube::string_at(document.get_object(), {"kind"}) == kube::resources::custom_resource_definitions.kind)
        all.push_back(std::move(document.get_object()));
  return all;
}

bool is_established(const kube::Object* definition) {
  return definition != nullptr && kube::is_condition_true(*definition, "Established");
}

}  // namespace

const std::vector<kube::json::object>& crds() {
  static const auto all = read_embedded();
  return all;
}

async::Awaitable<> install_crds(kube::Api& api, kube::Env env) {
  return install_crds(api, CrdSelection{}, std::move(env));
}

async::Awaitable<> install_crds(kube::Api& api, CrdSelection selection, kube::Env env) {
  std::vector<kube::json::object> wanted;
  for (const auto& definition : crds()) {
    const auto kind = kube::string_at(definition, {"spec", "names", "kind"});
    if (std::ranges::find(selection.without, kind) == selection.without.end()) wanted.push_back(definition);
  }
  kube::Cache<kube::Object> served{api, kube::resources::custom_resource_definitions, {}, kube::object_decoder(), env};
  const auto deadline = async::later(env.clock.now(), establish_timeout);
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(served.run());
    for (const auto& definition : wanted) {
      auto made = co_await api.create(kube::resources::custom_resource_definitions, definition);
      if (!made && made.error().kind != kube::ErrorKind::already_exists)
        throw std::runtime_error("cannot install a CustomResourceDefinition: " + made.error().describe());
    }
    for (const auto& definition : wanted) {
      kube::Key key{{}, std::string{kube::string_at(definition, {"metadata", "name"})}};
      co_await served.wait_for(key, is_established, deadline);
    }
    scope.stop();
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::sim
