#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hubferry::obs {

/// What a client asked for: a GET, or a HEAD, which is answered alike.
struct HttpRequest {
  std::string path;  // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;
  std::string accept;
  bool accepts_gzip = false;

  [[nodiscard]] bool has_query(const std::string& name) const;
  /// All values that were given for `name`.
  [[nodiscard]] std::vector<std::string> query_values(const std::string& name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;

  static HttpResponse not_found(const std::string& hint);
};

/// Answers one request. Runs on the server's loop, so it must not block.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace hubferry::obs
