#include <gmock/gmock.h>

#include <openssl/x509_vfy.h>
#include <boost/json/serialize.hpp>

#include "kube/http/http_fixture.hpp"
#include "kube/http/tls_context.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

/// Has another value while this lives, however the test ends.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    if (const auto* before = getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class HttpTls : public HttpTest {
 protected:
  static kube::ClientConfig trusting(const Authority& authority) {
    kube::ClientConfig config;
    config.ca_pem = authority.certificate_pem();
    return config;
  }

  void expect_refused(const ScriptedServer& server, const kube::ClientConfig& config, const std::string& why) {
    auto api = connect(server, config);
    const auto object = get(*api);
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().kind, ErrorKind::unreachable);
    EXPECT_THAT(object.error().message, HasSubstr(why));
    EXPECT_THAT(object.error().message, HasSubstr("127.0.0.1:" + std::to_string(server.port())));
    EXPECT_EQ(server.accepted(), 1) << "a second attempt cannot help";
  }

  Authority authority_{"test authority"};
};

TEST_F(HttpTls, ATrustedServerIsTalkedToAndTheConnectionKept) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), answer_all};
  auto api = connect(server, trusting(authority_));
  for (int i = 0; i < 3; ++i) {
    const auto object = get(*api);
    ASSERT_TRUE(object) << object.error();
  }
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(HttpTls, TheNextConnectionResumesTheSession) {
  std::atomic<int> resumed = 0;
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [&](Session& session) {
                          session.read_request();
                          if (session.resumed()) ++resumed;
                          session.reply(200, object_a, "Content-Type: application/json\r\nConnection: close\r\n");
                        }};
  auto api = connect(server, trusting(authority_));
  for (int i = 0; i < 3; ++i) {
    const auto object = get(*api);
    ASSERT_TRUE(object) << object.error();
  }
  EXPECT_EQ(resumed, 2);
}

TEST_F(HttpTls, ACertificateForAnotherNameIsRefused) {
  ScriptedServer server{authority_.issue({"DNS:kube.example.org", "IP:10.0.0.1"}), answer_all};
  expect_refused(server, trusting(authority_), "is for kube.example.org, 10.0.0.1, not for 127.0.0.1");
}

TEST_F(HttpTls, TheConfiguredServerNameIsTheOneToCheck) {
  ScriptedServer server{authority_.issue({"DNS:kube.example.org"}), answer_all};
  auto config = trusting(authority_);
  config.tls_server_name = "kube.example.org";
  {
    auto api = connect(server, config);
    const auto object = get(*api);
    EXPECT_TRUE(object) << object.error();
  }
  config.tls_server_name = "other.example.org";
  auto api = connect(server, config);
  EXPECT_THAT(get(*api).error().message, HasSubstr("not for other.example.org"));
}

TEST_F(HttpTls, AnExpiredCertificateIsRefused) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}, -1), answer_all};
  expect_refused(server, trusting(authority_), "expired on ");
}

TEST_F(HttpTls, ACertificateOfAnUnknownAuthorityIsRefused) {
  const Authority other{"somebody else"};
  ScriptedServer server{other.issue({"IP:127.0.0.1"}), answer_all};
  expect_refused(server, trusting(authority_), "signed by an unknown authority (issuer: CN = somebody else)");
}

// As in Go: whatever is in certificate-authority-data is trusted, self-signed or not.
TEST_F(HttpTls, AnIntermediateAuthorityCanBeTheOneTrusted) {
  const Authority intermediate{"intermediate", authority_};
  ScriptedServer server{intermediate.issue({"IP:127.0.0.1"}), answer_all};
  auto api = connect(server, trusting(intermediate));
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
}

// As in Go: only subjectAltName counts.
TEST_F(HttpTls, ACertificateWithACommonNameOnlyIsRefused) {
  ScriptedServer server{authority_.issue({}), answer_all};
  auto config = trusting(authority_);
  config.tls_server_name = "test";
  expect_refused(server, config, "is for no name at all, not for test");
}

// OpenSSL would ask on the terminal, and block the loop meanwhile.
TEST_F(HttpTls, AnEncryptedPrivateKeyIsAnError) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), answer_all};
  const auto identity = authority_.issue({});
  auto config = trusting(authority_);
  config.client_certificate_pem = identity.certificate_pem;
  config.client_key_pem = Authority::encrypted(identity.key_pem, "secret");
  try {
    connect(server, config);
    FAIL() << "it was accepted";
  } catch (const kube::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("client-key-data is encrypted"));
  }
}

TEST_F(HttpTls, ACertificateRenewedOnDiskIsReadWhenTheServerRefusesTheOldOneByAnAlert) {
  TemporaryDirectory directory;
  const auto old_one = authority_.issue({});
  const auto new_one = authority_.issue({});
  auto config = trusting(authority_);
  config.client_certificate_file = directory.write("client.crt", old_one.certificate_pem);
  config.client_key_file = directory.write("client.key", old_one.key_pem);
  config.client_certificate_pem = old_one.certificate_pem;
  config.client_key_pem = old_one.key_pem;
  const auto accepts = [&](const std::string& pem) { return pem == new_one.certificate_pem; };
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), accepts, answer_all};
  auto api = connect(server, config);
  EXPECT_FALSE(get(*api));
  EXPECT_EQ(create(*api).error().kind, ErrorKind::unreachable) << "refused in the handshake: it had no effect";
  directory.write("client.crt", new_one.certificate_pem);
  directory.write("client.key", new_one.key_pem);
  const auto object = create(*api);
  EXPECT_TRUE(object) << object.error();
}

TEST_F(HttpTls, TheSystemsAuthoritiesDoNotKnowOurs) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), answer_all};
  expect_refused(server, {}, "unknown authority");
}

TEST_F(HttpTls, WithoutVerificationAnyCertificateIsAccepted) {
  ScriptedServer server{authority_.issue({"DNS:wrong"}, -1), answer_all};
  kube::ClientConfig config;
  config.insecure_skip_tls_verify = true;
  auto api = connect(server, config);
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
  EXPECT_THAT(metrics_.text(),
              HasSubstr("hubferry_client_unverified_tls{host=\"127.0.0.1:" + std::to_string(server.port()) + "\"} 1"));
}

TEST_F(HttpTls, AResetInTheHandshakeIsTriedAgain) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [](Session& session) {
                          if (session.index() == 0) {
                            session.read_raw();
                            session.reset();
                          }
                          answer_all(session);
                        }};
  auto api = connect(server, trusting(authority_));
  // The request was not sent: a write may be repeated too.
  const auto object = create(*api);
  EXPECT_TRUE(object) << object.error();
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpTls, ASilentHandshakeMeetsTheDeadline) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [](Session& session) { session.wait_until_gone(); }};
  options_.connect_timeout = 100ms;
  options_.max_retries = 0;
  auto api = connect(server, trusting(authority_));
  const auto object = create(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::unreachable);
  EXPECT_THAT(object.error().message, HasSubstr("TLS handshake with"));
  EXPECT_THAT(object.error().message, HasSubstr("took too long"));
  EXPECT_TRUE(server.wait_until_idle());
}

TEST_F(HttpTls, AServerThatSpeaksNoTlsIsUnreachable) {
  ScriptedServer server{[](Session& session) {
    session.read_raw();
    session.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  }};
  options_.max_retries = 0;
  auto config = trusting(authority_);
  config.server = "https://127.0.0.1:" + std::to_string(server.port());
  auto api = connect(config);
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::unreachable) << object.error();
}

// Without close_notify anybody could have cut the answer short.
TEST_F(HttpTls, AnAnswerThatEndsWithoutCloseNotifyIsLost) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [](Session& session) {
                          session.read_request();
                          session.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + object_a);
                          session.close(false);
                          session.wait_until_gone();
                        }};
  options_.max_retries = 0;
  auto api = connect(server, trusting(authority_));
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().kind, ErrorKind::unreachable);
}

// Certificates are renewed by writing new files; a controller should not have to be restarted for that.
TEST_F(HttpTls, ARefusedClientCertificateIsReadAgainAndShownOnANewConnection) {
  TemporaryDirectory directory;
  const auto old_one = authority_.issue({});
  const auto new_one = authority_.issue({});
  const auto write = [&](const Identity& identity) {
    directory.write("tls.crt", identity.certificate_pem);
    directory.write("tls.key", identity.key_pem);
  };
  write(old_one);
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [&](Session& session) {
                          while (true) {
                            session.read_request();
                            const bool known = session.client_certificate_pem() == new_one.certificate_pem;
                            session.reply(known ? 200 : 401, known ? object_a : "{}");
                          }
                        }};
  auto config = trusting(authority_);
  config.client_certificate_pem = old_one.certificate_pem;
  config.client_key_pem = old_one.key_pem;
  config.client_certificate_file = directory.path() / "tls.crt";
  config.client_key_file = directory.path() / "tls.key";
  auto api = connect(server, config);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::unauthorized) << "nobody has renewed it yet";
  EXPECT_EQ(server.accepted(), 1);

  // Half of a renewal cannot be used, and does no harm.
  directory.write("tls.crt", new_one.certificate_pem);
  EXPECT_EQ(get(*api).error().kind, ErrorKind::unauthorized);
  write(new_one);
  const auto object = create(*api);
  EXPECT_TRUE(object) << object.error();
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(HttpTls, AnAuthorityThatWasReplacedIsReadAgain) {
  TemporaryDirectory directory;
  const Authority successor{"the next authority"};
  ScriptedServer server{successor.issue({"IP:127.0.0.1"}), answer_all};
  auto config = trusting(authority_);
  config.ca_file = directory.write("ca.crt", authority_.certificate_pem());
  auto api = connect(server, config);
  EXPECT_THAT(get(*api).error().message, HasSubstr("unknown authority"));
  directory.write("ca.crt", authority_.certificate_pem() + successor.certificate_pem());
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
}

// A distribution's update, or a mounted bundle.
TEST_F(HttpTls, TheSystemsAuthoritiesAreReadAgainWhenTheyWereReplaced) {
  TemporaryDirectory directory;
  const Authority successor{"the next authority"};
  const EnvironmentVariable bundle{"SSL_CERT_FILE", directory.write("ca.crt", authority_.certificate_pem())};
  ScriptedServer server{successor.issue({"IP:127.0.0.1"}), answer_all};
  auto api = connect(server, {});
  EXPECT_THAT(get(*api).error().message, HasSubstr("unknown authority"));
  directory.write("ca.crt", authority_.certificate_pem() + successor.certificate_pem());
  const auto object = get(*api);
  EXPECT_TRUE(object) << object.error();
}

// One context for the whole process; what is a client's own stays its own.
TEST_F(HttpTls, ClientsThatTrustTheSameAuthorityShareAContextAndNothingElse) {
  std::atomic<int> resumed = 0;
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [&](Session& session) {
                          session.read_request();
                          if (session.resumed()) ++resumed;
                          const auto body = R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":)" +
                                            json::serialize(json::object{{"x", session.client_certificate_pem()}}) +
                                            "}";
                          session.reply(200, body, "Content-Type: application/json\r\nConnection: close\r\n");
                        }};
  std::vector<std::unique_ptr<kube::Api>> clients;
  std::vector<std::string> certificates;
  for (int number = 0; number < 2; ++number) {
    const auto identity = authority_.issue({});
    auto config = trusting(authority_);
    config.client_certificate_pem = identity.certificate_pem;
    config.client_key_pem = identity.key_pem;
    certificates.push_back(identity.certificate_pem);
    clients.push_back(connect(server, config));
  }
  for (int round = 0; round < 2; ++round)
    for (std::size_t number = 0; number < clients.size(); ++number) {
      const auto object = get(*clients[number]);
      ASSERT_TRUE(object) << object.error();
      EXPECT_EQ(object->string_at({"data", "x"}), certificates[number]);
    }
  EXPECT_EQ(resumed, 2) << "each resumes its own session";
  const auto url = kube::parse_server_url("https://10.0.0.1");
  kube::http::TlsContext one{trusting(authority_), url, nullptr};
  kube::http::TlsContext two{trusting(authority_), url, nullptr};
  kube::http::TlsContext other{trusting(Authority{"other"}), url, nullptr};
  EXPECT_EQ(&one.context(), &two.context());
  EXPECT_NE(&one.context(), &other.context());
}

TEST_F(HttpTls, AListOfManyRecordsIsReadWhole) {
  std::string items;
  for (int number = 0; number < 20'000; ++number) items += (number == 0 ? "" : ",") + object_a;
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [&](Session& session) {
                          while (true) {
                            session.read_request();
                            session.reply(200, R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"12"},)"
                                               R"("items":[)" +
                                                   items + "]}");
                          }
                        }};
  auto api = connect(server, trusting(authority_));
  for (int round = 0; round < 2; ++round) {
    const auto page = run(api->list(kube::resources::config_maps, kube::ListOptions{}, kube::object_decoder()));
    ASSERT_TRUE(page) << page.error();
    EXPECT_EQ(page->items.size(), 20'000U);
  }
  EXPECT_EQ(server.accepted(), 1);
}

// In pieces of a record, and with pauses: what waits has no buffer, and must lose nothing of what comes.
TEST_F(HttpTls, AWatchGetsEventsThatComeInPieces) {
  const std::string line = R"({"type":"ADDED","object":)" + object_a + "}\n";
  ScriptedServer server{
      authority_.issue({"IP:127.0.0.1"}), [&](Session& session) {
        session.read_request();
        session.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
        for (int number = 0; number < 3; ++number)
          for (const auto& part : {line.substr(0, 10), line.substr(10) + line.substr(0, 5), line.substr(5)})
            session.send(part);
        session.close(true);
      }};
  auto api = connect(server, trusting(authority_));
  auto read_all = [&]() -> Awaitable<int> {
    kube::WatchOptions options;
    auto stream = co_await api->watch(kube::resources::config_maps, options, kube::object_decoder());
    if (!stream) co_return -1;
    int count = 0;
    while (true) {
      auto batch = co_await (*stream)->next();
      if (!batch) co_return -2;
      if (batch->empty()) co_return count;
      count += static_cast<int>(batch->size());
    }
  };
  EXPECT_EQ(run(read_all()), 6);
}

// Whatever comes can be read at once: the loop has to get its turn nevertheless.
TEST_F(HttpTls, AnEndlessAnswerMeetsTheDeadline) {
  ScriptedServer server{authority_.issue({"IP:127.0.0.1"}), [](Session& session) {
                          session.read_request();
                          session.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
                          const std::string part(16'000, ' ');
                          while (true) session.send(part);
                        }};
  options_.request_timeout = 2s;  // with the handshake, on a busy machine
  options_.max_object = options_.max_answer = std::size_t{1} << 40;
  options_.max_retries = 0;
  auto api = connect(server, trusting(authority_));
  const auto object = get(*api);
  ASSERT_FALSE(object);
  EXPECT_THAT(object.error().message, HasSubstr("no answer in time"));
}

// A name that OpenSSL cannot take would leave it without one, and every certificate would do.
TEST_F(HttpTls, TheCertificateOfAnAddressWithAZoneIsCheckedForTheAddress) {
  const auto checked_address = [&](const std::string& server) {
    kube::http::TlsContext tls{trusting(authority_), kube::parse_server_url(server), nullptr};
    SSL* stream = SSL_new(tls.context().native_handle());
    tls.prepare(stream);
    char* address = X509_VERIFY_PARAM_get1_ip_asc(SSL_get0_param(stream));
    std::string text = address == nullptr ? "nothing" : address;
    OPENSSL_free(address);
    SSL_free(stream);
    return text;
  };
  EXPECT_EQ(checked_address("https://[fe80::1%25eth0]:6443"), "FE80:0:0:0:0:0:0:1");
  EXPECT_EQ(checked_address("https://[fd00::2]"), "FD00:0:0:0:0:0:0:2");
  EXPECT_EQ(checked_address("https://10.0.0.1"), "10.0.0.1");
}

TEST_F(HttpTls, AnAuthorityThatCannotBeReadIsAConfigError) {
  kube::ClientConfig config;
  config.server = "https://127.0.0.1:1";
  config.source = "/etc/x.kubeconfig";
  for (const char* text : {"nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    config.ca_pem = text;
    EXPECT_THROW(connect(config), kube::ConfigError) << text;
  }
}

TEST_F(HttpTls, AClientKeyThatDoesNotMatchIsAConfigError) {
  const auto one = authority_.issue({});
  const auto two = authority_.issue({});
  auto config = trusting(authority_);
  config.server = "https://127.0.0.1:1";
  config.client_certificate_pem = one.certificate_pem;
  config.client_key_pem = two.key_pem;
  EXPECT_THROW(connect(config), kube::ConfigError);
}

}  // namespace
}  // namespace hubferry::test
