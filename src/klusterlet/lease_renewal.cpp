#include "klusterlet/lease_renewal.hpp"

#include <boost/json/object.hpp>

namespace hubferry::klusterlet {

namespace {

kube::json::object renewed(kube::json::object lease, const std::string& renew_time) {
  auto& spec = lease["spec"];
  if (!spec.is_object()) spec = kube::json::object{};
  spec.get_object()["renewTime"] = renew_time;
  return lease;
}

/// What an update need not send: without it the server keeps what it has.
kube::json::object without_managed_fields(kube::json::object lease) {
  auto* metadata = lease.if_contains("metadata");
  if (metadata != nullptr && metadata->is_object()) metadata->get_object().erase("managedFields");
  return lease;
}

}  // namespace

async::Awaitable<kube::Result<>> LeaseRenewal::renew(kube::Api& api, kube::Key key, std::string renew_time) {
  if (auto known = std::exchange(known_, std::nullopt)) {
    auto written = co_await api.update(kube::resources::leases, renewed(std::move(*known), renew_time));
    if (written) {
      known_ = without_managed_fields(written->json());
      co_return kube::Result<>{};
    }
    const auto kind = written.error().kind;
    if (kind != kube::ErrorKind::conflict && kind != kube::ErrorKind::not_found) co_return written.error();
  }
  auto lease = co_await api.get(kube::resources::leases, key);
  if (!lease) co_return lease.error();
  auto written = co_await api.update(kube::resources::leases, renewed(lease->json(), renew_time));
  if (!written) co_return written.error();
  known_ = without_managed_fields(written->json());
  co_return kube::Result<>{};
}

}  // namespace hubferry::klusterlet
