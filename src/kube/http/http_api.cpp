#include "hubferry/kube/http_api.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/json/parse.hpp>

#include "hubferry/async/loops.hpp"
#include "kube/cache/identity.hpp"
#include "kube/cache/json_cursor.hpp"
#include "kube/http/client.hpp"
#include "kube/http/http_watch.hpp"

namespace hubferry::kube {

namespace {

using http::about;
using http::Answer;
using http::Client;
using http::WireRequest;
using ClientPtr = std::shared_ptr<Client>;

// Servers end a watch on their own after at most an hour (kube-apiserver: a random time, twice min-request-timeout).
constexpr auto longest_watch = std::chrono::hours{1};

bool is_json(const Answer& answer) {
  return answer.content_type.find("json") != std::string::npos;
}

using Parse = json::value(std::string_view text, boost::system::error_code& error);

Result<json::value> parse_answer(const WireRequest& request, const Answer& answer, Parse& parse = detail::parse_json) {
  if (!is_json(answer))
    return about(request, ErrorKind::bad_response,
                 "expected JSON, but the server sent " +
                     (answer.content_type.empty() ? "something without a content type" : answer.content_type));
  boost::system::error_code ec;
  json::value parsed = parse(answer.body, ec);
  if (ec) return about(request, ErrorKind::bad_response, "the answer is not valid JSON: " + ec.message());
  return parsed;
}

/// An answer that cannot be read leaves open what became of a write.
Error unreadable(const WireRequest& request, Error error) {
  if (!request.read_only) error.kind = ErrorKind::ambiguous;
  return error;
}

/// True if the answer is about the object that the request names. A connection on which a server, or a proxy, has sent
/// one answer too many would bring that of another request.
bool is_asked_for(const Request& request, const Object& object) {
  const auto& subresource = request.subresource;
  // Others answer with a kind of their own: TokenRequest, Scale, Eviction.
  if (!subresource.empty() && subresource != "status" && subresource != "approval") return true;
  const auto kind = object.string_at({"kind"});
  if (request.verb == Verb::remove && kind == "Status") return true;
  if (!request.resource.kind.empty() && kind != request.resource.kind) return false;
  std::string_view name = request.key.name;
  if (request.verb == Verb::create && request.body.is_object())
    name = string_at(request.body.get_object(), {"metadata", "name"});
  // Without a name, the server generates one, or it is a review, which has none.
  if (name.empty()) return true;
  return object.name() == name &&
         (!request.resource.namespaced || request.key.ns.empty() || object.ns() == request.key.ns);
}

Awaitable<Result<Object>> call_on_loop(ClientPtr client, Request request) {
  if (!names_one_object(request)) co_return unnamed(request);
  const WireRequest wire = http::wire_request(request, client->options().field_manager);
  auto answer = co_await client->perform(wire, request.deadline);
  if (!answer) co_return answer.error();
  auto parsed = parse_answer(wire, *answer, detail::parse_object);
  if (!parsed) co_return unreadable(wire, parsed.error());
  if (!parsed->is_object())
    co_return unreadable(wire, about(wire, ErrorKind::bad_response, "the answer is not a JSON object"));
  Object object{std::move(parsed->get_object())};
  if (is_asked_for(request, object)) co_return object;
  client->close_idle();
  co_return unreadable(wire, about(wire, ErrorKind::bad_response,
                                   "the server answered with another object: " +
                                       std::string{object.string_at({"kind"})} + " " + to_string(object.key())));
}

Awaitable<Result<ListPage>> list_on_loop(ClientPtr client, Resource resource, ListOptions options,
                                         const Decoder* decoder) {
  const WireRequest wire = http::wire_request(resource, options);
  auto answer = co_await client->perform(wire, options.deadline);
  if (!answer) co_return answer.error();
  if (!is_json(*answer)) co_return parse_answer(wire, *answer).error();
  auto envelope = split_list(answer->body);
  if (!envelope) co_return about(wire, envelope.error());
  ListPage page;
  page.resource_version = std::move(envelope->resource_version);
  page.continue_token = std::move(envelope->continue_token);
  page.items.reserve(envelope->items.size());
  for (const auto item : envelope->items) {
    auto decoded = decoder->from_bytes(item);
    if (decoded) {
      decoded->bytes = item.size();
      page.items.push_back(std::move(*decoded));
    } else if (decoded.error().kind == ErrorKind::unsupported) {
      client->skipped(wire, decoded.error());
      // That it exists is known all the same: a cache keeps what it had.
      if (auto identity = identify(item)) page.items.push_back(std::move(*identity));
    } else
      co_return about(wire, decoded.error());
  }
  co_return page;
}

Awaitable<Result<std::unique_ptr<WatchStream>>> watch_on_loop(ClientPtr client, async::Executor loop, Resource resource,
                                                              WatchOptions options, const Decoder* decoder) {
  WireRequest wire = http::wire_request(resource, options);
  auto stream = co_await client->open_stream(wire);
  if (!stream) co_return stream.error();
  const Duration lifetime = options.timeout > Duration{0} ? options.timeout : Duration{longest_watch};
  const Duration silence_limit = lifetime + client->options().watch_idle_margin;
  auto watch = std::make_unique<http::HttpWatch>(std::move(client), std::move(*stream), std::move(wire), *decoder,
                                                 silence_limit);
  co_return http::make_watch_stream(std::move(loop), std::move(watch));
}

Awaitable<Result<json::value>> get_path_on_loop(ClientPtr client, std::string path) {
  const WireRequest wire = http::wire_request(std::move(path));
  auto answer = co_await client->perform(wire, TimePoint{});
  if (!answer) co_return answer.error();
  // /readyz and its like answer in plain text.
  if (!is_json(*answer)) co_return json::value(answer->body);
  co_return parse_answer(wire, *answer);
}

class HttpApi final : public Api {
 public:
  HttpApi(std::string name, ClientPtr client, async::Executor loop)
      : name_(std::move(name)), client_(std::move(client)), loop_(std::move(loop)) {}
  HttpApi(const HttpApi&) = delete;
  HttpApi& operator=(const HttpApi&) = delete;

  ~HttpApi() override {
    // Sockets and timers may be touched on their loop only.
    boost::asio::dispatch(loop_, [client = std::move(client_)]() mutable { client.reset(); });
  }

  Awaitable<Result<Object>> call(Request request) override {
    auto work = [client = client_, request = std::move(request)]() mutable {
      return call_on_loop(client, std::move(request));
    };
    return async::run_on(loop_, std::move(work));
  }

  Awaitable<Result<ListPage>> list(Resource resource, ListOptions options, const Decoder& decoder) override {
    auto work = [client = client_, resource = std::move(resource), options = std::move(options), &decoder] {
      return list_on_loop(client, resource, options, &decoder);
    };
    return async::run_on(loop_, std::move(work));
  }

  Awaitable<Result<std::unique_ptr<WatchStream>>> watch(Resource resource, WatchOptions options,
                                                        const Decoder& decoder) override {
    auto work = [client = client_, loop = loop_, resource = std::move(resource), options = std::move(options),
                 &decoder] { return watch_on_loop(client, loop, resource, options, &decoder); };
    return async::run_on(loop_, std::move(work));
  }

  Awaitable<Result<json::value>> get_path(std::string path) override {
    auto work = [client = client_, path = std::move(path)] { return get_path_on_loop(client, path); };
    return async::run_on(loop_, std::move(work));
  }

  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  std::string name_;
  ClientPtr client_;
  async::Executor loop_;
};

}  // namespace

std::unique_ptr<Api> make_http_api(ClientConfig config, HttpApiOptions options, async::Executor loop, Env env) {
  std::string name = options.name.empty() ? config.name : options.name;
  auto client = std::make_shared<Client>(std::move(config), std::move(options), loop, std::move(env));
  return std::make_unique<HttpApi>(std::move(name), std::move(client), std::move(loop));
}

}  // namespace hubferry::kube
