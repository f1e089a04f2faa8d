// The manager processes of these tests meet a simulated global hub, which lives as long as the test program.
#include <cstdlib>
#include <memory>

#include "hubferry/sim/crds.hpp"
#include "sim/served_test.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

class GlobalHub : public testing::Environment {
 public:
  void SetUp() override {
    hub_ = std::make_unique<sim::Served>();
    hub_->run([](sim::Server& server, const kube::Env& env) { return sim::install_crds(server.api(), env); });
    const auto file = directory_.write("global.kubeconfig", hub_->kubeconfig_for(sim::admin()));
    setenv("KUBECONFIG", file.c_str(), 1);
  }
  void TearDown() override { hub_.reset(); }

 private:
  test::TemporaryDirectory directory_;
  std::unique_ptr<sim::Served> hub_;
};

const auto* const global_hub = testing::AddGlobalTestEnvironment(new GlobalHub);

}  // namespace
}  // namespace hubferry::test
