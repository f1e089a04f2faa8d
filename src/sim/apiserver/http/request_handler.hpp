#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/apiserver/core.hpp"
#include "sim/apiserver/http/route.hpp"
#include "sim/apiserver/watch.hpp"

namespace hubferry::sim {

/// A request as the transport read it.
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
  std::unique_ptr<Watch> watch;  // set: answer with a stream of its events, encoded by `encode`
  std::function<std::string(const WatchItem&)> encode;
  bool reset = false;  // break the connection instead of answering
};

/// Turns HTTP into requests of the Core, and its answers into bytes. Knows no sockets.
class HttpHandler {
 public:
  /// `anonymous`: who is asking when no credential is given; nobody: 401.
  HttpHandler(std::shared_ptr<Core> core, std::optional<User> anonymous)
      : core_(std::move(core)), anonymous_(std::move(anonymous)) {}

  /// Carries one request out, with the latency and the faults that the server is told to have.
  async::Awaitable<HttpResponse> handle(HttpRequest request);
  /// {"type":"ERROR", …}
  static std::string encode_error(const StatusError& failure);
  [[nodiscard]] const obs::Logger& log() const { return core_->log(); }

 private:
  /// What goes wrong in here is the server's fault, and is answered as such.
  HttpResponse respond(const Route& route, const HttpRequest& request, std::string_view verb,
                       const Faults::Decision& decision);
  [[nodiscard]] std::optional<User> who(const HttpRequest& request) const;
  HttpResponse on_resource(const User& user, const Route& route, const HttpRequest& request, std::string_view verb,
                           const Faults::Decision& decision);
  HttpResponse list(const User& user, const Kind& kind, const Route& route, const HttpRequest& request,
                    const Faults::Decision& decision);
  HttpResponse watch(const User& user, const Kind& kind, const Route& route, const HttpRequest& request);
  HttpResponse remove_all(const User& user, const Kind& kind, const Route& route);
  HttpResponse on_path(const Route& route, const HttpRequest& request) const;

  std::shared_ptr<Core> core_;
  std::optional<User> anonymous_;
};

}  // namespace hubferry::sim
