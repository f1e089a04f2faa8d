#pragma once

#include "hub_test.hpp"
#include "hubferry/kube/base64.hpp"
#include "sim/ocm/request_pem.hpp"

namespace hubferry::hubagent {

inline const auto& requests = kube::resources::certificate_signing_requests;

/// The attributes of a certificate request; the defaults are those of c1's agent with the migration's identity.
struct AskedFor {
  std::string user = "system:serviceaccount:open-cluster-management-agent-addon:move";
  std::string label = "c1";
  std::string signer = "kubernetes.io/kube-apiserver-client";
  std::string common_name = "system:open-cluster-management:c1:agent1";
  std::vector<std::string> groups = {"system:open-cluster-management:c1",
                                     "system:open-cluster-management:managed-clusters"};
  json::array usages = {"digital signature", "key encipherment", "client auth"};
};

/// Agents request certificates on the second hub.
class RequestTest : public HubTest {
 protected:
  Awaitable<std::string> ask(AskedFor asked) {
    const auto pem = sim::make_request_pem(asked.common_name, asked.groups).request;
    json::object request{
        {"metadata", json::object{{"generateName", "c1-"},
                                  {"labels", json::object{{ocm::names::cluster_name_label, asked.label}}}}},
        {"spec",
         json::object{{"request", kube::encode_base64(pem)}, {"signerName", asked.signer}, {"usages", asked.usages}}}};
    const auto as = hub2_->server.api_as({asked.user, {"system:masters"}, {}});
    auto made = co_await as->create(requests, std::move(request));
    EXPECT_TRUE(made) << made.error();
    co_return made ? std::string{made->name()} : std::string{};
  }
};

}  // namespace hubferry::hubagent
