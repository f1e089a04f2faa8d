#include "kube/http/http_watch.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/json/parse.hpp>

#include "hubferry/async/loops.hpp"
#include "kube/cache/identity.hpp"

namespace hubferry::kube::http {

namespace {

constexpr std::string_view initial_events_end = "k8s.io/initial-events-end";

Result<WatchEvent> decode_bookmark(std::string_view object) {
  boost::system::error_code ec;
  const json::value parsed = json::parse(object, ec);
  if (ec || !parsed.is_object())
    return Error{ErrorKind::bad_response, 0, {}, "a bookmark that is not a JSON object", std::nullopt};
  WatchEvent event;
  event.type = WatchEventType::bookmark;
  event.decoded.resource_version = string_at(parsed.get_object(), {"metadata", "resourceVersion"});
  event.initial_events_end = string_at(parsed.get_object(), {"metadata", "annotations", initial_events_end}) == "true";
  return event;
}

std::optional<WatchEventType> parse_type(std::string_view type) {
  if (type == "ADDED") return WatchEventType::added;
  if (type == "MODIFIED") return WatchEventType::modified;
  if (type == "DELETED") return WatchEventType::deleted;
  return std::nullopt;
}

}  // namespace

HttpWatch::HttpWatch(std::shared_ptr<Client> client, Client::Stream stream, WireRequest request, const Decoder& decoder,
                     Duration silence_limit)
    : client_(std::move(client)),
      stream_(std::move(stream)),
      request_(std::move(request)),
      decoder_(decoder),
      silence_limit_(silence_limit),
      lines_(client_->options().max_watch_line) {}

Awaitable<Result<std::vector<WatchEvent>>> HttpWatch::next() {
  std::vector<WatchEvent> events;
  const auto on_line = [&](std::string_view line) { take_line(line, events); };
  while (events.empty() && !failure_ && !ended_) {
    const TimePoint deadline = async::later(client_->clock().now(), silence_limit_);
    auto loss = co_await stream_.connection->read_body(deadline, chunk_);
    if (loss) {
      if (loss->out_of_time) loss->why = "the stream was silent for too long";
      fail(error_from_loss(request_, *loss));
    } else if (!chunk_.empty()) {
      auto fed = lines_.feed(chunk_, on_line);
      if (!fed) fail(about(request_, fed.error()));
    } else {
      ended_ = true;
      // The last line may lack its end; if it is no whole event, that shows now.
      if (lines_.pending() > 0) (void)lines_.feed("\n", on_line);
      stream_.connection->close();
    }
  }
  if (events.empty() && failure_) co_return *failure_;
  co_return events;
}

void HttpWatch::take_line(std::string_view line, std::vector<WatchEvent>& events) {
  if (failure_) return;
  const auto envelope = split_watch_event(line);
  if (!envelope) {
    fail(about(request_, envelope.error()));
    return;
  }
  if (envelope->type == "ERROR") {
    fail(about(request_, error_from_status(0, envelope->object)));
    return;
  }
  auto event = decode(envelope->type, envelope->object);
  if (event)
    events.push_back(std::move(*event));
  else if (event.error().kind == ErrorKind::unsupported) {
    client_->skipped(request_, event.error());
    if (auto identity = identify(envelope->object))
      events.push_back({*parse_type(envelope->type), std::move(*identity), false});
  } else
    fail(about(request_, event.error()));
}

Result<WatchEvent> HttpWatch::decode(std::string_view type, std::string_view object) const {
  if (type == "BOOKMARK") return decode_bookmark(object);
  const auto known = parse_type(type);
  if (!known)
    return Error{
        ErrorKind::bad_response, 0, {}, "an event of unknown type \"" + std::string{type} + "\"", std::nullopt};
  auto decoded = decoder_.from_bytes(object);
  if (!decoded) return decoded.error();
  decoded->bytes = object.size();
  return WatchEvent{*known, std::move(*decoded), false};
}

void HttpWatch::fail(Error error) {
  if (failure_) return;
  failure_ = std::move(error);
  stream_.connection->close();
}

namespace {

class RemoteWatch final : public WatchStream {
 public:
  RemoteWatch(async::Executor loop, std::unique_ptr<HttpWatch> watch)
      : loop_(std::move(loop)), watch_(std::move(watch)) {}
  RemoteWatch(const RemoteWatch&) = delete;
  RemoteWatch& operator=(const RemoteWatch&) = delete;

  ~RemoteWatch() override {
    asio::dispatch(loop_, [watch = std::move(watch_)]() mutable { watch.reset(); });
  }

  Awaitable<Result<std::vector<WatchEvent>>> next() override {
    auto work = [watch = watch_] { return watch->next(); };
    return async::run_on(loop_, std::move(work));
  }

 private:
  async::Executor loop_;
  std::shared_ptr<HttpWatch> watch_;
};

}  // namespace

std::unique_ptr<WatchStream> make_watch_stream(async::Executor loop, std::unique_ptr<HttpWatch> watch) {
  return std::make_unique<RemoteWatch>(std::move(loop), std::move(watch));
}

}  // namespace hubferry::kube::http
