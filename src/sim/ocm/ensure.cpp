#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

namespace json = kube::json;

namespace {

void merge(json::object& into, const json::object& wanted) {
  for (const auto& field : wanted) {
    auto& present = into[field.key()];
    if (present.is_object() && field.value().is_object())
      merge(present.get_object(), field.value().get_object());
    else
      present = field.value();
  }
}

}  // namespace

kube::Awaitable<kube::Result<kube::Written>> ensure(kube::Api& api, kube::Resource resource, json::object wanted) {
  kube::Key key = kube::Object{wanted}.key();
  kube::Mutation mutate = [wanted = std::move(wanted)](json::object& object) {
    if (kube::contains_fields(object, wanted)) return false;
    merge(object, wanted);
    return true;
  };
  return kube::create_or_patch(api, std::move(resource), std::move(key), std::move(mutate));
}

kube::Awaitable<kube::Result<>> ensure_exists(kube::Api& api, kube::Resource resource, json::object wanted) {
  auto made = co_await api.create(resource, std::move(wanted));
  if (!made && made.error().kind != kube::ErrorKind::already_exists) co_return made.error();
  co_return kube::Result<>{};
}

kube::Awaitable<kube::Result<>> ensure_gone(kube::Api& api, kube::Resource resource, kube::Key key) {
  auto removed = co_await api.remove(resource, std::move(key));
  if (!removed && removed.error().kind != kube::ErrorKind::not_found) co_return removed.error();
  co_return kube::Result<>{};
}

}  // namespace hubferry::sim
