#include "kube/contract/real_world.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <filesystem>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/http_api.hpp"
#include "support/real_loop.hpp"

namespace hubferry::contract {

namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0')
    throw std::runtime_error(std::string{name} +
                             " is not set: run this by tests/real-kube/run, or ./dev test --real-kube");
  return value;
}

/// One POST to etcd's gateway, blocking; throws unless it is answered by 200.
void post(const std::string& url, const std::string& path, const json::object& body) {
  const auto address = url.substr(url.find("//") + 2);
  const auto colon = address.rfind(':');
  asio::io_context context;
  asio::ip::tcp::resolver resolver{context};
  asio::ip::tcp::socket socket{context};
  asio::connect(socket, resolver.resolve(address.substr(0, colon), address.substr(colon + 1)));
  const std::string content = json::serialize(body);
  const std::string request =
      "POST " + path + " HTTP/1.1\r\nHost: " + address +
      "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + std::to_string(content.size()) +
      "\r\n\r\n" + content;
  asio::write(socket, asio::buffer(request));
  std::string answer;
  boost::system::error_code end;
  asio::read(socket, asio::dynamic_buffer(answer), end);
  if (!answer.starts_with("HTTP/1.1 200")) throw std::runtime_error("etcd answered: " + answer);
}

class RealWorld final : public ContractWorld {
 public:
  explicit RealWorld(const std::filesystem::path& kubeconfig) {
    const ClientConfig config = load_kubeconfig(kubeconfig);
    const auto nobody = kubeconfig.parent_path() / (kubeconfig.stem().string() + "-nobody.kubeconfig");
    ClientConfig wrong = config;
    wrong.token = "this-token-is-wrong";
    admin_ = make_http_api(config, {}, loop_.executor(), env());
    nobody_ = make_http_api(load_kubeconfig(nobody), {}, loop_.executor(), env());
    stranger_ = make_http_api(wrong, {}, loop_.executor(), env());
  }

  Api& admin() override { return *admin_; }
  Api& nobody() override { return *nobody_; }
  Api* stranger() override { return stranger_.get(); }
  Env env() override { return {clock_, random_, metrics_, {}}; }
  void run(Awaitable<> task) override { loop_.run(std::move(task)); }
  [[nodiscard]] bool namespaces_need_help() const override { return true; }

  Awaitable<> compact() override {
    // A list's version is etcd's revision.
    const ListOptions options;
    auto page = co_await admin_->list(resources::namespaces, options, object_decoder());
    const json::object body{{"revision", page.value().resource_version}, {"physical", true}};
    post(from_environment("HUBFERRY_REAL_ETCD"), "/v3/kv/compaction", body);
  }

 private:
  async::RealClock clock_;
  async::Random random_ = async::Random::from_entropy();
  obs::Metrics metrics_;
  test::RealLoop loop_;
  std::unique_ptr<Api> admin_;
  std::unique_ptr<Api> nobody_;
  std::unique_ptr<Api> stranger_;
};

}  // namespace

std::string real_kubeconfig() {
  return from_environment("HUBFERRY_REAL_KUBECONFIG");
}

std::unique_ptr<ContractWorld> make_real_world() {
  return std::make_unique<RealWorld>(real_kubeconfig());
}

}  // namespace hubferry::contract
