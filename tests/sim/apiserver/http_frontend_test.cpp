#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "hubferry/obs/log_sink.hpp"
#include "sim/served_test.hpp"
#include "support/descriptors.hpp"
#include "support/tcp_client.hpp"

namespace hubferry::sim {
namespace {

using test::TcpClient;
using testing::HasSubstr;
using testing::StartsWith;

HttpOptions plain() {
  HttpOptions options;
  options.tls = false;
  options.anonymous = admin();
  return options;
}

std::string post(TcpClient& client, const std::string& target, const std::string& body) {
  client.send("POST " + target + " HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  return client.receive_response();
}

/// While it lives, no further descriptor can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest);
    rlimit tight = before_;
    tight.rlim_cur = static_cast<rlim_t>(lowest);
    setrlimit(RLIMIT_NOFILE, &tight);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(HttpFrontendTest, TheFrontendOutlivesALackOfDescriptors) {
  HUBFERRY_SKIP_WHERE_DESCRIPTORS_ARE_NEEDED();
  obs::LogCapture log;
  Served served{plain(), {}, log.logger()};
  // So that everything that is opened on first use is open.
  EXPECT_THAT(TcpClient{served.frontend().port()}.get("/readyz"), HasSubstr("200 OK"));
  served.on_loop([] {});
  std::optional<TcpClient> late;
  {
    // The last descriptor is the client's; the frontend gets none for it.
    const int spare = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const NoDescriptors none;
    ::close(spare);
    late.emplace(served.frontend().port());
    while (!log.contains("accepting a connection failed")) std::this_thread::yield();
  }
  EXPECT_THAT(late->get("/readyz"), HasSubstr("200 OK"));
}

TEST(HttpFrontendTest, ClientsBeyondTheConnectionLimitWaitUntilOneDisconnects) {
  auto options = plain();
  options.most_connections = 1;
  Served served{options};
  std::optional<TcpClient> first{std::in_place, served.frontend().port()};
  EXPECT_THAT(first->get("/readyz"), HasSubstr("200 OK"));
  TcpClient second{served.frontend().port()};
  second.send("GET /readyz HTTP/1.1\r\nHost: sim\r\n\r\n");
  EXPECT_THAT(first->get("/readyz"), HasSubstr("200 OK"));
  served.on_loop([&] { EXPECT_EQ(served.frontend().connections(), 1U); });
  first.reset();
  EXPECT_THAT(second.receive_response(), HasSubstr("200 OK"));
}

TEST(HttpFrontendTest, AnExceptionInsideTheServerIsA500AndTheServerContinues) {
  Served served{plain()};
  served.on_loop([&] {
    served.server().add_admission(
        kube::resources::config_maps,
        [](const AdmissionReview&) -> std::optional<std::string> { throw std::runtime_error("a bug"); });
  });
  TcpClient client{served.frontend().port()};
  const auto answer = post(client, "/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"a"}})");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(answer, HasSubstr(R"("reason":"InternalError")"));
  EXPECT_THAT(answer, HasSubstr("a bug"));
  EXPECT_THAT(client.get("/api/v1/namespaces/default/configmaps"), HasSubstr("200 OK"));
}

TEST(HttpFrontendTest, RequestsAreCountedAsAKubernetesServerCountsThem) {
  Served served{plain(), {}, {}};
  TcpClient client{served.frontend().port()};
  client.get("/api/v1/namespaces");
  client.get("/api/v1/namespaces/absent");
  client.get("/api/v1/namespaces/absent");
  client.get("/apis/example.com/v1/unknown");
  const auto metrics = client.get("/metrics");
  const auto line = [](const std::string& code, const std::string& verb, const std::string& count) {
    return "apiserver_request_total{code=\"" + code + "\",group=\"\",resource=\"namespaces\",subresource=\"\",verb=\"" +
           verb + "\",version=\"v1\"} " + count + "\n";
  };
  EXPECT_THAT(metrics, HasSubstr(line("200", "LIST", "1")));
  EXPECT_THAT(metrics, HasSubstr(line("404", "GET", "2")));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("unknown"))) << "anybody could make it grow";
}

TEST(HttpFrontendTest, InvalidQueriesAreRejectedAndHugeOnesAreBounded) {
  Served served{plain()};
  TcpClient client{served.frontend().port()};
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  for (const char* query :
       {"?limit=many", "?limit=99999999999999999999", "?watch=true&timeoutSeconds=1e3", "?fieldSelector=nonsense",
        "?fieldSelector=spec.nothing%3D1", "?labelSelector=a%3D%3D%3Db%2C%2C", "?resourceVersion=-1",
        "?resourceVersion=newest", "?continue=%00"})
    EXPECT_THAT(client.get(maps + query), StartsWith("HTTP/1.1 400")) << query;
  for (const char* query : {"?limit=-1", "?limit=9223372036854775807"})
    EXPECT_THAT(client.get(maps + query), StartsWith("HTTP/1.1 200")) << query;
  // Each of these occupies its connection.
  for (const char* query :
       {"?watch=true&timeoutSeconds=9223372036854775807", "?watch=true&timeoutSeconds=-9223372036854775808"}) {
    TcpClient watching{served.frontend().port()};
    EXPECT_THAT(watching.get(maps + query), StartsWith("HTTP/1.1 200")) << query;
  }
  EXPECT_THAT(client.get("/readyz"), HasSubstr("200 OK"));
}

TEST(HttpFrontendTest, BackgroundWorkOnInvalidObjectsDoesNotStopTheServer) {
  Served served{plain()};
  TcpClient client{served.frontend().port()};
  const std::string requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const auto made = post(client, requests, R"({"metadata":{"name":"odd"},"spec":{"request":"bm9uc2Vuc2U=",
      "signerName":"kubernetes.io/kube-apiserver-client","expirationSeconds":-9223372036854775808}})");
  EXPECT_THAT(made, StartsWith("HTTP/1.1 201"));
  const std::string approval = R"({"status":{"conditions":[{"type":"Approved","status":"True"}]}})";
  client.send("PATCH " + requests +
              "/odd/approval HTTP/1.1\r\nHost: sim\r\nContent-Type: "
              "application/merge-patch+json\r\nContent-Length: " +
              std::to_string(approval.size()) + "\r\n\r\n" + approval);
  EXPECT_THAT(client.receive_response(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(client.get(requests + "/odd"), HasSubstr("SignerValidationFailure"));
}

TEST(HttpFrontendTest, AnInvalidProtobufBodyIsReported) {
  Served served{plain()};
  TcpClient client{served.frontend().port()};
  const auto send = [&](const std::string& body) {
    client.send(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: sim\r\nContent-Type: "
        "application/vnd.kubernetes.protobuf\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.receive_response();
  };
  EXPECT_THAT(send("k8s"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(send(std::string{"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 15}), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(send(std::string{"k8s\0\x0a\x05\x12\x03Pod", 11}), HasSubstr("does not support protobuf of kind Pod"));
}

}  // namespace
}  // namespace hubferry::sim
