#include "hubferry/ui/console.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/bind_address.hpp"
#include "hubferry/obs/http_server.hpp"
#include "ui/assets.hpp"
#include "ui/hub_figures.hpp"
#include "ui/model.hpp"
#include "ui/request_guard.hpp"
#include "ui/token_access.hpp"
#include "ui/viewers.hpp"

namespace hubferry::ui {

using namespace std::chrono_literals;
using async::Awaitable;

namespace {

// A burst of changes is one event for each migration. Smooth for the eye, and 5,000 clusters cost little.
constexpr auto pause_between_events = 100ms;
constexpr auto hub_interval = 2s;
// With --ui-auth=token: a stream ends, and the page connects again with its token.
constexpr auto longest_reviewed_stream = 5min;

Viewers::Limits viewer_limits(const ConsoleOptions& options) {
  Viewers::Limits limits;
  limits.viewers = options.max_viewers;
  if (options.access_api != nullptr) limits.longest = longest_reviewed_stream;
  return limits;
}

obs::HttpServer::Options server_options(const ConsoleOptions& options) {
  obs::HttpServer::Options server;
  server.address = options.address;
  server.log = options.log;
  return server;
}

obs::HttpReply text(int status, std::string why) {
  obs::HttpReply reply;
  reply.response = {.status = status, .body = std::move(why) + "\n"};
  return reply;
}

obs::HttpReply json_page(const json::object& content) {
  obs::HttpReply reply;
  reply.response = {.content_type = "application/json", .body = json::serialize(content) + "\n"};
  return reply;
}

std::string_view content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

/// The page itself. It holds no data, so nobody needs a token for it.
std::optional<obs::HttpReply> asset(const std::string& path) {
  const auto name = path == "/" ? std::string_view{"index.html"} : std::string_view{path}.substr(1);
  const auto files = page_files();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  if (file == files.end()) return std::nullopt;
  obs::HttpReply reply;
  reply.response = {.content_type = std::string{content_type(name)}, .body = std::string{file->content}};
  return reply;
}

std::string query_value(const obs::HttpRequest& request, const std::string& name) {
  const auto values = request.query_values(name);
  return values.empty() ? std::string{} : values.front();
}

}  // namespace

struct Console::State : std::enable_shared_from_this<State> {
  State(async::Executor on, async::Clock& the_clock, obs::Metrics& the_metrics, ConsoleOptions given)
      : loop(on),
        clock(the_clock),
        metrics(the_metrics),
        options(std::move(given)),
        model(options.describe, {{"version", options.version}, {"auth", options.access_api != nullptr}}),
        viewers(clock, viewer_limits(options)),
        server(loop, clock, server_options(options),
               [this](const obs::HttpExchange& exchange) { return answer(exchange); }) {
    if (const auto address = obs::parse_bind_address(options.address)) host = address->host;
    if (options.access_api != nullptr) access.emplace(*options.access_api, options.watch_namespace, clock, options.log);
  }

  Awaitable<obs::HttpReply> answer(const obs::HttpExchange& exchange) {
    auto reply = co_await route(exchange);
    for (const auto& header : security_headers()) reply.headers.push_back(header);
    co_return reply;
  }

  Awaitable<obs::HttpReply> route(const obs::HttpExchange& exchange) {
    const auto& path = exchange.request.path;
    if (!is_expected_host(host, exchange.host))
      co_return text(421, "this address is not served under that name: use 127.0.0.1 or localhost");
    if (auto found = asset(path)) co_return std::move(*found);
    if (!path.starts_with("/api/")) co_return text(404, "not found: try /");
    if (access) {
      const auto verdict = co_await access->check(exchange.authorization);
      if (verdict != Access::allowed) co_return refusal(verdict);
    }
    co_return api(exchange.request);
  }

  static obs::HttpReply refusal(Access access) {
    switch (access) {
      case Access::unauthenticated: {
        auto reply = text(401, "a bearer token is required that the API server knows");
        reply.headers.emplace_back("WWW-Authenticate", "Bearer");
        return reply;
      }
      case Access::forbidden:
        return text(403, "this user may not list managedclustermigrations");
      case Access::too_many:
        return text(429, "too many tokens to review: try again in a second");
      default:
        return text(503, "the API server did not review the token: try again");
    }
  }

  obs::HttpReply api(const obs::HttpRequest& request) {
    const auto now = clock.wall_now();
    if (request.path == "/api/state") return json_page(model.snapshot(now));
    if (request.path == "/api/events") return events(now);
    const auto migration = query_value(request, "migration");
    if (request.path == "/api/clusters") {
      // A viewer compares versions with those of the events: it must not get states that no event told of.
      publish();
      const auto clusters = model.clusters(migration);
      return clusters ? json_page(*clusters) : text(404, "no such migration");
    }
    if (request.path == "/api/cluster") {
      const auto cluster = model.cluster(migration, query_value(request, "name"));
      return cluster ? json_page(*cluster) : text(404, "no such cluster");
    }
    return text(404, "not found: try /api/state");
  }

  obs::HttpReply events(async::WallTime now) {
    publish();
    auto stream = viewers.join("event: snapshot\ndata: " + json::serialize(model.snapshot(now)) + "\n\n");
    if (stream == nullptr) {
      auto reply = text(503, "too many viewers");
      reply.headers.emplace_back("Retry-After", "10");
      return reply;
    }
    obs::HttpReply reply;
    reply.response.content_type = "text/event-stream";
    reply.headers.emplace_back("X-Accel-Buffering", "no");  // proxies such as nginx would hold events back
    reply.stream = std::move(stream);
    hubs_wanted.notify();
    return reply;
  }

  void publish() {
    if (!model.changed()) return;
    for (const auto& event : model.take_events(clock.wall_now())) viewers.publish(event);
  }

  Awaitable<> publish_changes() {
    for (;;) {
      while (!model.changed()) co_await changed.wait();
      publish();
      co_await clock.sleep_for(pause_between_events);
    }
  }

  /// Only while somebody looks.
  Awaitable<> publish_hubs() {
    for (;;) {
      while (viewers.count() == 0) co_await hubs_wanted.wait();
      model.put_hubs(figures.update(metrics.text(), clock.now()));
      changed.notify();
      co_await clock.sleep_for(hub_interval);
    }
  }

  static Awaitable<> run(std::shared_ptr<State> self) {
    auto all = [self](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(self->publish_changes());
      scope.spawn(self->publish_hubs());
      co_await self->server.run();
      scope.stop();
    };
    co_await async::with_scope(all);
  }

  /// Runs `change(model, now)` on the console's loop.
  template <typename Change>
  void post(Change change) {
    async::post_across(loop, [self = shared_from_this(), change = std::move(change)] {
      change(self->model, self->clock.wall_now());
      self->changed.notify();
    });
  }

  async::Executor loop;
  async::Clock& clock;
  obs::Metrics& metrics;
  ConsoleOptions options;
  std::string host;  // that it listens on; empty: all
  Model model;
  Viewers viewers;
  HubFigures figures;
  std::optional<TokenAccess> access;
  async::Notify changed;
  async::Notify hubs_wanted;
  obs::HttpServer server;
};

Console::Console(async::Executor loop, async::Clock& clock, obs::Metrics& metrics, ConsoleOptions options)
    : state_(std::make_shared<State>(std::move(loop), clock, metrics, std::move(options))) {}

Console::~Console() = default;

bool Console::enabled() const {
  return state_->server.enabled();
}

void Console::listen() {
  state_->server.listen();
}

std::uint16_t Console::port() const {
  return state_->server.port();
}

std::string Console::url() const {
  const auto& host = state_->host;
  const bool is_v6 = host.find(':') != std::string::npos;
  const std::string shown = host.empty() ? "127.0.0.1" : is_v6 ? "[" + host + "]" : host;
  return "http://" + shown + ":" + std::to_string(port()) + "/";
}

Awaitable<> Console::run() {
  const auto state = state_;
  auto serve = [state] { return State::run(state); };
  co_await async::run_on(state->loop, serve);
}

json::object Console::snapshot() const {
  return state_->model.snapshot(state_->clock.wall_now());
}

json::object Console::clusters(const std::string& migration) const {
  return state_->model.clusters(migration).value_or(json::object{});
}

void Console::put(std::shared_ptr<const kube::Object> migration) {
  state_->post([migration = std::move(migration)](Model& model, async::WallTime now) { model.put(*migration, now); });
}

void Console::remove(kube::Key migration) {
  state_->post([migration = std::move(migration)](Model& model, async::WallTime) { model.remove(migration); });
}

void Console::put_clusters(kube::Key migration, std::string uid, std::vector<migration::ClusterRecord> records) {
  state_->post([migration = std::move(migration), uid = std::move(uid), records = std::move(records)](
                   Model& model, async::WallTime now) { model.put_clusters(migration, uid, records, now); });
}

void Console::arrive(kube::Key migration, std::string cluster) {
  state_->post([migration = std::move(migration), cluster = std::move(cluster)](Model& model, async::WallTime now) {
    model.arrive(migration, cluster, now);
  });
}

void Console::put_hub_server(std::string hub, std::string server) {
  async::post_across(state_->loop, [state = state_, hub = std::move(hub), server = std::move(server)] {
    state->figures.name_host(hub, server);
  });
}

}  // namespace hubferry::ui
