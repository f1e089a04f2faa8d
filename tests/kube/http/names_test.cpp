#include <gmock/gmock.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>

#include "kube/http/http_fixture.hpp"
#include "kube/http/name_lookup.hpp"

namespace hubferry::test {
namespace {

using kube::http::NameLookup;
using testing::HasSubstr;

/// A name server in the test's hands.
class Names {
 public:
  using Addresses = NameLookup::Addresses;

  void set(const std::string& host, std::vector<std::string> addresses) {
    const std::lock_guard lock{mutex_};
    Addresses parsed;
    for (const auto& address : addresses) parsed.push_back(boost::asio::ip::make_address(address));
    addresses_[host] = std::move(parsed);
  }
  void hang(const std::string& host) {
    const std::lock_guard lock{mutex_};
    hanging_.insert(host);
  }
  void release_all() {
    const std::lock_guard lock{mutex_};
    hanging_.clear();
    changed_.notify_all();
  }
  Addresses resolve(const std::string& host, async::error_code& error) {
    std::unique_lock lock{mutex_};
    ++lookups_[host];
    changed_.wait(lock, [&] { return !hanging_.contains(host); });
    if (!addresses_.contains(host)) error = boost::asio::error::host_not_found_try_again;
    return addresses_[host];
  }
  int lookups(const std::string& host) {
    const std::lock_guard lock{mutex_};
    return lookups_[host];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Addresses> addresses_;
  std::map<std::string, int> lookups_;
  std::set<std::string> hanging_;
};

/// A socket on another address of loopback.
class Listener {
 public:
  Listener(const char* address, int port, int backlog) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, address, &name.sin_addr);
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || ::listen(fd_, backlog) != 0)
      throw std::runtime_error("cannot listen");
    // A full backlog swallows further packets.
    for (int i = 0; backlog == 0 && i < 3; ++i) {
      fillers_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)!::connect(fillers_.back(), reinterpret_cast<sockaddr*>(&name), sizeof name);
    }
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() {
    for (const int filler : fillers_) ::close(filler);
    ::close(fd_);
  }
  /// True if somebody has connected.
  [[nodiscard]] bool has_caller() const {
    pollfd state{fd_, POLLIN, 0};
    return ::poll(&state, 1, 0) > 0;
  }

 private:
  int fd_;
  std::vector<int> fillers_;
};

class HttpNames : public HttpTest {
 protected:
  HttpNames() {
    options_.names = std::make_shared<NameLookup>(
        [names = names_](const std::string& host, async::error_code& error) { return names->resolve(host, error); });
    options_.max_retries = 0;
  }
  ~HttpNames() override { names_->release_all(); }

  std::unique_ptr<kube::Api> connect_to(const std::string& host, int port) {
    kube::ClientConfig config;
    config.server = "http://" + host + ":" + std::to_string(port);
    return connect(config);
  }
  Awaitable<> get_and_note(kube::Api& api, std::vector<std::string>& answers) {
    auto object = co_await api.get(kube::resources::config_maps, key_a);
    answers.push_back(object ? "ok" : object.error().message);
  }

  std::shared_ptr<Names> names_ = std::make_shared<Names>();
};

// One client's loop is that of many hubs: a name server that does not answer for one of them is no matter of the
// others.
TEST_F(HttpNames, ANameServerThatIsDeadStopsNoOtherHub) {
  ScriptedServer server{answer_all};
  names_->set("good.example", {"127.0.0.1"});
  std::vector<std::unique_ptr<kube::Api>> dead;
  std::vector<std::string> answers;
  auto good = connect_to("good.example", server.port());
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 20; ++i) {
      const auto host = "dead" + std::to_string(i) + ".example";
      names_->hang(host);
      dead.push_back(connect_to(host, server.port()));
      scope.spawn(get_and_note(*dead.back(), answers));
      while (names_->lookups(host) == 0) co_await clock_.sleep_for(1ms);
    }
    const auto object = co_await good->get(kube::resources::config_maps, key_a);
    EXPECT_TRUE(object) << object.error();
    EXPECT_THAT(answers, testing::IsEmpty());
    scope.stop();
  };
  run(async::with_scope(body));
}

TEST_F(HttpNames, CallersOfOneNameShareItsLookup) {
  ScriptedServer server{answer_all};
  names_->set("hub.example", {"127.0.0.1"});
  names_->hang("hub.example");
  auto api = connect_to("hub.example", server.port());
  std::vector<std::string> answers;
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (int i = 0; i < 8; ++i) scope.spawn(get_and_note(*api, answers));
    while (names_->lookups("hub.example") == 0) co_await clock_.sleep_for(1ms);
    co_await clock_.sleep_for(10ms);
    EXPECT_EQ(names_->lookups("hub.example"), 1);
    names_->release_all();
  };
  run(async::with_scope(body));
  EXPECT_EQ(answers, std::vector<std::string>(8, "ok"));
}

TEST_F(HttpNames, WhileANameCannotBeLookedUpItsLastAddressesAreUsed) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, object_a, "Content-Type: application/json\r\nConnection: close\r\n");
  }};
  names_->set("hub.example", {"127.0.0.1"});
  auto api = connect_to("hub.example", server.port());
  EXPECT_TRUE(get(*api));
  names_->set("hub.example", {});  // fails
  EXPECT_TRUE(get(*api)) << "the lookup failed";
  names_->hang("hub.example");
  EXPECT_TRUE(get(*api)) << "the lookup does not come back";
  EXPECT_TRUE(get(*api)) << "still the same lookup";
  EXPECT_EQ(names_->lookups("hub.example"), 3);
}

TEST_F(HttpNames, ANameThatIsUnknownIsAnError) {
  auto api = connect_to("unknown.example", 1);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_THAT(object.error().message, HasSubstr("looking up unknown.example:1: "));
}

// SIGTERM while the name server is dead.
TEST_F(HttpNames, NothingWaitsForALookupThatWasAbandoned) {
  names_->hang("dead.example");
  {
    RealLoop loop;
    kube::ClientConfig config;
    config.server = "http://dead.example:1";
    auto api = kube::make_http_api(config, options_, loop.executor(), env_);
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      std::vector<std::string> answers;
      scope.spawn(get_and_note(*api, answers));
      while (names_->lookups("dead.example") == 0) co_await clock_.sleep_for(1ms);
      scope.stop();
    };
    loop.run(async::with_scope(body));
  }
  options_.names.reset();
  names_->release_all();  // its thread finds nobody
}

// An API server that has failed over: its old address swallows packets. The next one answers within the same request,
// which is how a leader keeps its Lease.
TEST_F(HttpNames, AnAddressThatSwallowsPacketsLeavesTimeForTheOthers) {
  ScriptedServer server{answer_all};
  std::vector<std::unique_ptr<Listener>> dead;
  std::vector<std::string> addresses;
  for (int i = 2; i < 6; ++i) {
    addresses.push_back("127.0.0." + std::to_string(i));
    dead.push_back(std::make_unique<Listener>(addresses.back().c_str(), server.port(), 0));
  }
  addresses.emplace_back("127.0.0.1");
  names_->set("hub.example", addresses);
  options_.connect_timeout = 60s;  // shares of it would be longer than the request
  options_.request_timeout = 10s;
  auto api = connect_to("hub.example", server.port());
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
}

TEST_F(HttpNames, TheAddressThatWorkedIsTriedFirst) {
  ScriptedServer server{[](Session& session) {
    session.read_request();
    session.reply(200, object_a, "Content-Type: application/json\r\nConnection: close\r\n");
  }};
  names_->set("hub.example", {"127.0.0.2", "127.0.0.1"});
  auto api = connect_to("hub.example", server.port());
  EXPECT_TRUE(get(*api)) << "the first address refuses";
  const Listener revived{"127.0.0.2", server.port(), 4};
  EXPECT_TRUE(get(*api));
  EXPECT_FALSE(revived.has_caller());
}

// Behind that address the server hangs: the kernel still accepts connections for it.
TEST_F(HttpNames, AnAddressThatDoesNotShakeHandsIsNotTriedFirstAgain) {
  const Authority authority{"names"};
  ScriptedServer server{authority.issue({"DNS:hub.example"}), answer_all};
  const Listener half_dead{"127.0.0.2", server.port(), 4};
  names_->set("hub.example", {"127.0.0.2", "127.0.0.1"});
  options_.connect_timeout = 500ms;
  kube::ClientConfig config;
  config.server = "https://hub.example:" + std::to_string(server.port());
  config.ca_pem = authority.certificate_pem();
  auto api = connect(config);
  EXPECT_FALSE(get(*api));
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
}

TEST_F(HttpNames, BothFamiliesAreTriedInTurn) {
  names_->set("hub.example", {"2001:db8::1", "2001:db8::2", "192.0.2.1"});
  const auto found = run(options_.names->find("hub.example", clock_));
  std::vector<std::string> texts;
  for (const auto& address : found) texts.push_back(address.to_string());
  EXPECT_THAT(texts, testing::ElementsAre("2001:db8::1", "192.0.2.1", "2001:db8::2"));
}

}  // namespace
}  // namespace hubferry::test
