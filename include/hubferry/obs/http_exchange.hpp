#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/http_types.hpp"

namespace hubferry::obs {

/// A request with what matters for who may read the answer.
struct HttpExchange {
  HttpRequest request;
  std::string host;           // the header Host as it was sent
  std::string authorization;  // a credential: never logged
};

/// The body of an answer that has no end yet, such as server-sent events.
/// Lifetime: the connection keeps it until the client is gone. Executor: the server's loop.
class HttpBodyStream {
 public:
  virtual ~HttpBodyStream() = default;

  /// Waits for what comes next. nullopt: the answer is complete, and the connection is closed. Cancellation: terminal.
  virtual async::Awaitable<std::optional<std::string>> next() = 0;
};

/// An answer with headers of its own, and perhaps a stream after its body.
struct HttpReply {
  HttpResponse response;
  std::vector<std::pair<std::string, std::string>> headers;  // names and values of ours, never a client's
  std::unique_ptr<HttpBodyStream> stream;                    // null: the response is complete
};

/// Answers one request, and may wait for that. Runs on the server's loop. Lifetime: the exchange outlives the answer.
using HttpExchangeHandler = std::function<async::Awaitable<HttpReply>(const HttpExchange&)>;

}  // namespace hubferry::obs
