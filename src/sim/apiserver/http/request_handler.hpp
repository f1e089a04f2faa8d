#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/apiserver/core.hpp"
#include "sim/apiserver/http/request_counts.hpp"
#include "sim/apiserver/http/route.hpp"
#include "sim/apiserver/watch.hpp"

namespace hubferry::sim {

/// An HTTP request, independent of the transport.
struct HttpRequest {
  std::string method;
  std::string target;
  std::string accept;
  std::string content_type;
  std::string user_agent;
  std::string authorization;
  std::string body;
  std::optional<User> certified;  // by a client certificate
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::optional<int> retry_after_seconds;
  std::unique_ptr<Watch> watch;  // set: respond with a stream of its events, encoded by `encode`
  std::function<std::string(const WatchItem&)> encode;
  bool reset = false;  // reset the connection instead of responding
};

/// Converts HTTP requests to calls of the Core, and its results to HTTP responses. Does no I/O.
class RequestHandler {
 public:
  /// `anonymous`: the user of requests without a credential; absent: 401.
  RequestHandler(std::shared_ptr<Core> core, std::optional<User> anonymous)
      : core_(std::move(core)), anonymous_(std::move(anonymous)) {}

  /// Executes one request, with the configured latency and faults.
  async::Awaitable<HttpResponse> handle(HttpRequest request);
  /// {"type":"ERROR", …}
  static std::string encode_error(const StatusError& failure);
  [[nodiscard]] const obs::Logger& log() const { return core_->log(); }

 private:
  /// Exceptions become internal errors (500).
  HttpResponse respond(const Route& route, const HttpRequest& request, std::string_view verb,
                       const Faults::Decision& decision);
  [[nodiscard]] std::optional<User> authenticate(const HttpRequest& request) const;
  HttpResponse on_resource(const User& user, const Route& route, const HttpRequest& request, std::string_view verb,
                           const Faults::Decision& decision);
  HttpResponse list(const User& user, const Kind& kind, const Route& route, const HttpRequest& request,
                    const Faults::Decision& decision);
  HttpResponse watch(const User& user, const Kind& kind, const Route& route, const HttpRequest& request);
  HttpResponse remove_all(const User& user, const Kind& kind, const Route& route);
  HttpResponse on_path(const Route& route, const HttpRequest& request) const;

  std::shared_ptr<Core> core_;
  std::optional<User> anonymous_;
  std::shared_ptr<RequestCounts> counts_ = std::make_shared<RequestCounts>();
};

}  // namespace hubferry::sim
