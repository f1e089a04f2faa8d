#include "sim/ocm/ocm_test.hpp"
#include "sim/ocm/request_pem.hpp"

namespace hubferry::sim {
namespace {

const auto& requests = kube::resources::certificate_signing_requests;

constexpr const char* own_group = "system:open-cluster-management:c1";
constexpr const char* common_group = "system:open-cluster-management:managed-clusters";
constexpr const char* own_name = "system:open-cluster-management:c1:agent1";

/// The attributes of a request; the defaults are valid.
struct Asked {
  std::string label = "c1";
  std::string signer = "kubernetes.io/kube-apiserver-client";
  std::string common_name = own_name;
  std::vector<std::string> organizations = {own_group, common_group};
  std::string pem_type = "CERTIFICATE REQUEST";
};

class Certificates : public HubTest {
 protected:
  using HubTest::HubTest;

  std::string ask(kube::Api& as, const Asked& asked) {
    auto pem = make_request_pem(asked.common_name, asked.organizations).request;
    for (auto at = pem.find("CERTIFICATE REQUEST"); at != std::string::npos;
         at = pem.find("CERTIFICATE REQUEST", at + asked.pem_type.size()))
      pem.replace(at, std::string_view{"CERTIFICATE REQUEST"}.size(), asked.pem_type);
    json::object metadata{{"generateName", "c1-"}};
    if (!asked.label.empty())
      metadata["labels"] = json::object{{"open-cluster-management.io/cluster-name", asked.label}};
    json::object request{{"metadata", std::move(metadata)},
                         {"spec", json::object{{"request", encode_base64(pem)},
                                               {"signerName", asked.signer},
                                               {"usages", json::array{"digital signature", "client auth"}}}}};
    const auto made = must(as.create(requests, std::move(request)));
    settle();
    return std::string{made.name()};
  }
  /// "Approved/reason", "Denied/reason", or "" while undecided.
  std::string decision(const std::string& name) const {
    const auto request = server_.object(requests, {"", name});
    const auto* conditions = request ? request->find({"status", "conditions"}) : nullptr;
    if (conditions == nullptr || conditions->as_array().empty()) return {};
    const auto& first = conditions->as_array()[0].as_object();
    return std::string{first.at("type").as_string()} + "/" + std::string{first.at("reason").as_string()};
  }
  std::shared_ptr<kube::Api> bootstrap() {
    const auto config = kube::parse_kubeconfig(hub_options_.bootstrap_kubeconfig.reveal(), "test", std::nullopt);
    return network_.connect(config);
  }
};

constexpr const char* approved = "Approved/AutoApprovedByHubCSRApprovingController";

TEST_F(Certificates, ABootstrapRequestOfAListedUserIsApprovedAndSigned) {
  const auto name = ask(*bootstrap(), {});
  EXPECT_EQ(decision(name), approved);
  EXPECT_FALSE(server_.object(requests, {"", name})->string_at({"status", "certificate"}).empty());
}

TEST_F(Certificates, ABootstrapRequestOfSomebodyElseIsLeftAlone) {
  const auto stranger = server_.api_as({"stranger", {"system:masters"}, {}});
  EXPECT_EQ(decision(ask(*stranger, {})), "");
}

TEST_F(Certificates, TheOptionalCommonGroupMayBeMissing) {
  Asked asked;
  asked.organizations = {own_group};
  EXPECT_EQ(decision(ask(*bootstrap(), asked)), approved);
}

// Each is an attempt to impersonate another cluster.
TEST_F(Certificates, ARequestThatIsNotExactlyOurAgentsIsNeverApproved) {
  std::vector<std::pair<std::string, Asked>> cases;
  const auto add = [&](const char* what, auto change) {
    Asked asked;
    change(asked);
    cases.emplace_back(what, asked);
  };
  add("no label", [](Asked& asked) { asked.label.clear(); });
  add("another signer", [](Asked& asked) { asked.signer = "example.com/signer"; });
  add("wrong PEM type", [](Asked& asked) { asked.pem_type = "NEW CERTIFICATE REQUEST"; });
  add("no organization", [](Asked& asked) { asked.organizations.clear(); });
  add("only the common group", [](Asked& asked) { asked.organizations = {common_group}; });
  add("wrong organization", [](Asked& asked) { asked.organizations = {"system:masters"}; });
  add("another organization beside it", [](Asked& asked) { asked.organizations.push_back("system:masters"); });
  add("organization with a suffix", [](Asked& asked) { asked.organizations = {std::string{own_group} + "0"}; });
  add("no common name", [](Asked& asked) { asked.common_name.clear(); });
  add("wrong common name", [](Asked& asked) { asked.common_name = "admin"; });
  add("cluster with a suffix", [](Asked& asked) { asked.common_name = "system:open-cluster-management:c10:agent1"; });
  add("common name without agent", [](Asked& asked) { asked.common_name = own_group; });
  add("common name with an empty agent", [](Asked& asked) { asked.common_name = std::string{own_group} + ":"; });
  add("common name with one colon more", [](Asked& asked) { asked.common_name += ":x"; });
  add("organization and common name of another cluster", [](Asked& asked) {
    asked.organizations = {"system:open-cluster-management:c2"};
    asked.common_name = "system:open-cluster-management:c2:agent1";
  });
  const auto api = bootstrap();
  for (const auto& [what, asked] : cases) EXPECT_EQ(decision(ask(*api, asked)), "") << what;
  EXPECT_EQ(decision(ask(*api, {})), approved) << "the control: a valid request";
}

TEST_F(Certificates, ARenewalIsApprovedForUsersThatMayRenew) {
  create_cluster("c1");
  const auto agent = agent_of("c1");
  EXPECT_EQ(decision(ask(*agent, {})), approved);
  accept("c1", false);
  EXPECT_FALSE(must(agent->may("create", requests, {}))) << "denied, it may not create requests";
}

TEST_F(Certificates, ARenewalWithoutPermissionIsLeftAlone) {
  create_accepted("c1");
  const auto agent = agent_of("c1");
  // All permissions but that to renew.
  json::object patch{{"rules", json::array{json::object{{"apiGroups", json::array{"certificates.k8s.io"}},
                                                        {"resources", json::array{"certificatesigningrequests"}},
                                                        {"verbs", json::array{"create", "get"}}}}}};
  must(api_.merge_patch(kube::resources::cluster_roles, {"", "open-cluster-management:managedcluster:c1"}, patch));
  EXPECT_EQ(decision(ask(*agent, {})), "");
}

TEST_F(Certificates, ARequestThatWasDecidedIsNotTouched) {
  const auto stranger = server_.api_as({"stranger", {"system:masters"}, {}});
  const auto name = ask(*stranger, {});
  json::object denied = server_.object(requests, {"", name})->json();
  denied["status"] = json::object{
      {"conditions", json::array{json::object{{"type", "Denied"}, {"status", "True"}, {"reason", "Human"}}}}};
  must(api_.update(requests, denied, "approval"));
  const std::string version{server_.object(requests, {"", name})->resource_version()};
  json::object patch{{"spec", json::object{{"registrationConfiguration",
                                            json::object{{"autoApproveUsers", json::array{"stranger"}}}}}}};
  must(api_.merge_patch(ocm::cluster_managers, {"", "cluster-manager"}, patch));
  loop_.run_for(1min);
  EXPECT_EQ(server_.object(requests, {"", name})->resource_version(), version);
}

// A migration adds its user to the list while agents already wait.
TEST_F(Certificates, PendingRequestsAreApprovedWhenTheirUserIsListedLater) {
  const auto stranger = server_.api_as({"stranger", {"system:masters"}, {}});
  const auto name = ask(*stranger, {});
  EXPECT_EQ(decision(name), "");
  json::object patch{{"spec", json::object{{"registrationConfiguration",
                                            json::object{{"autoApproveUsers", json::array{"stranger"}}}}}}};
  must(api_.merge_patch(ocm::cluster_managers, {"", "cluster-manager"}, patch));
  settle();
  EXPECT_EQ(decision(name), approved);
}

class CertificatesByHand : public Certificates {
 protected:
  CertificatesByHand() : Certificates(by_hand()) {}
  static HubOptions by_hand() {
    HubOptions options;
    options.auto_approval = false;
    return options;
  }
};

TEST_F(CertificatesByHand, WithoutTheGateABootstrapRequestNeedsManualApproval) {
  EXPECT_EQ(decision(ask(*bootstrap(), {})), "");
}

}  // namespace
}  // namespace hubferry::sim
