#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/kube/splitter.hpp"
#include "kube/http/client.hpp"

namespace hubferry::kube::http {

/// An open watch, on the client's loop: reads, cuts into lines, decodes.
/// Lifetime: the decoder outlives it.
class HttpWatch {
 public:
  /// `silence_limit`: how long the server may send nothing.
  HttpWatch(std::shared_ptr<Client> client, Client::Stream stream, WireRequest request, const Decoder& decoder,
            Duration silence_limit);

  /// See WatchStream::next().
  Awaitable<Result<std::vector<WatchEvent>>> next();

 private:
  /// Adds the line's event, or records why the stream ends here.
  void take_line(std::string_view line, std::vector<WatchEvent>& events);
  Result<WatchEvent> decode(std::string_view type, std::string_view object) const;
  void fail(Error error);

  std::shared_ptr<Client> client_;  // before the stream, whose slot is the client's
  Client::Stream stream_;
  WireRequest request_;
  const Decoder& decoder_;
  Duration silence_limit_;
  LineSplitter lines_;
  std::string chunk_;
  std::optional<Error> failure_;  // returned once all events before it have been handed out, and ever after
  bool ended_ = false;
};

/// The stream that callers on other loops hold: hands their calls over to `loop`, and the watch's end too.
std::unique_ptr<WatchStream> make_watch_stream(async::Executor loop, std::unique_ptr<HttpWatch> watch);

}  // namespace hubferry::kube::http
