#include "kube/contract/sim_world.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/sim/http_frontend.hpp"
#include "hubferry/sim/server.hpp"
#include "support/real_loop.hpp"

namespace hubferry::contract {

namespace {

const sim::User nobody_user{"nobody", {"system:authenticated"}, ""};

sim::Options options() {
  sim::Options options;
  options.name = "contract";
  // A real server sends a bookmark shortly before a watch's timeout; here they come often enough.
  options.bookmark_interval = std::chrono::seconds{1};
  return options;
}

class DirectSimWorld final : public ContractWorld {
 public:
  DirectSimWorld() = default;

  Api& admin() override { return server_.api(); }
  Api& nobody() override { return *nobody_; }
  Api* stranger() override { return nullptr; }
  Env env() override { return {loop_.clock(), random_, metrics_, {}}; }
  void run(Awaitable<> task) override { loop_.run(std::move(task)); }
  [[nodiscard]] bool differs(Difference) const override { return true; }
  Awaitable<> compact() override {
    server_.compact();
    co_return;
  }

 private:
  async::Random random_{1};
  obs::Metrics metrics_;
  async::VirtualLoop loop_;
  sim::Server server_{options(), env()};
  std::unique_ptr<Api> nobody_ = server_.api_as(nobody_user);
};

class HttpSimWorld final : public ContractWorld {
 public:
  HttpSimWorld() {
    auto wrong = frontend_.config_for(sim::admin());
    wrong.token = "this-token-is-wrong";
    admin_ = make_http_api(frontend_.config_for(sim::admin()), {}, loop_.executor(), env());
    nobody_ = make_http_api(frontend_.config_for(nobody_user), {}, loop_.executor(), env());
    stranger_ = make_http_api(wrong, {}, loop_.executor(), env());
  }

  Api& admin() override { return *admin_; }
  Api& nobody() override { return *nobody_; }
  Api* stranger() override { return stranger_.get(); }
  Env env() override { return {clock_, random_, metrics_, {}}; }
  [[nodiscard]] bool differs(Difference difference) const override { return difference != Difference::no_credentials; }
  Awaitable<> compact() override {
    server_.compact();
    co_return;
  }

  void run(Awaitable<> task) override {
    auto serve_and_run = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(frontend_.serve());
      co_await std::move(task);
      scope.stop();
    };
    loop_.run(async::with_scope(serve_and_run));
  }

 private:
  async::RealClock clock_;
  async::Random random_{1};
  obs::Metrics metrics_;
  test::RealLoop loop_;
  sim::Server server_{options(), env()};
  sim::HttpFrontend frontend_{server_, loop_.executor(), {}};
  std::unique_ptr<Api> admin_;
  std::unique_ptr<Api> nobody_;
  std::unique_ptr<Api> stranger_;
};

}  // namespace

std::unique_ptr<ContractWorld> make_direct_sim_world() {
  return std::make_unique<DirectSimWorld>();
}

std::unique_ptr<ContractWorld> make_http_sim_world() {
  return std::make_unique<HttpSimWorld>();
}

}  // namespace hubferry::contract
