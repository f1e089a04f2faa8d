#include "kube/http/client.hpp"

#include <algorithm>
#include <atomic>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/deadline.hpp"
#include "kube/http/inflate.hpp"
#include "kube/http/name_lookup.hpp"
#include "kube/http/tls_context.hpp"

namespace hubferry::kube::http {

namespace {

// Short at first: a server that restarts behind a load balancer is back on another address at once.
constexpr async::BackoffPolicy retry_pauses{.first = std::chrono::milliseconds{100},
                                            .most = std::chrono::seconds{5},
                                            .factor = 2.0,
                                            .jitter = 1.0,
                                            .reset_after = std::chrono::minutes{2}};

// A request that is cancelled after this long without an answer says something about the connection.
constexpr async::Duration suspicious_silence = std::chrono::seconds{1};

// An answer that refuses a watch is a Status; more than this is not read.
constexpr std::size_t max_refusal = 1024UL * 1024;

bool is_success(int status) {
  return status >= 200 && status < 300;
}

ServerUrl read_url(const ClientConfig& config) {
  try {
    return parse_server_url(config.server);
  } catch (const ConfigError& error) {
    throw ConfigError((config.source.empty() ? "" : config.source + ": ") + std::string{"server: "} + error.what());
  }
}

std::shared_ptr<const ClientCertificate> shared(std::optional<ClientCertificate> certificate) {
  if (!certificate || certificate->certificate_pem.empty()) return nullptr;
  return std::make_shared<const ClientCertificate>(std::move(*certificate));
}

}  // namespace

Client::Client(ClientConfig config, HttpApiOptions options, async::Executor loop, Env env)
    : config_(std::move(config)),
      options_(std::move(options)),
      env_(std::move(env)),
      loop_(std::move(loop)),
      random_(env_.random.fork()),
      url_(read_url(config_)),
      credentials_(config_, env_.clock),
      certificate_(shared(credentials_.client_certificate())),
      metrics_(env_.metrics, url_.authority()),
      rate_limit_(env_.clock, options_.qps, options_.burst),
      requests_(env_.clock, options_.max_connections, options_.idle_connection),
      watches_(env_.clock, options_.max_watches, options_.idle_connection) {
  choose_proxy();
  if (url_.tls) tls_ = std::make_shared<TlsContext>(config_, url_, certificate_);
  if (config_.client_certificate_file.empty() && config_.client_key_file.empty()) {
    // The credentials have them. One secret less in memory, and 1 KB for each of thousands of clients.
    std::string{}.swap(config_.client_certificate_pem);
    std::string{}.swap(config_.client_key_pem);
  }
  metrics_.verifies_tls(!url_.tls || tls_->verifies());
  if (url_.tls && !tls_->verifies())
    env_.log.warn("server certificate is not verified: the kubeconfig has insecure-skip-tls-verify",
                  {{"server", url_.authority()}});
  if (options_.user_agent.empty()) options_.user_agent = "hubferry";
  fixed_headers_ = " HTTP/1.1\r\nHost: " + url_.authority() + "\r\nUser-Agent: " + options_.user_agent +
                   "\r\nAccept: application/json\r\n";
}

void Client::choose_proxy() {
  auto choice = proxy_for(config_, url_, ConfigLocations{}.environment);
  proxy_ = std::move(choice.proxy);
  if (proxy_) env_.log.info("connecting through a proxy", {{"server", url_.authority()}, {"proxy", proxy_->display()}});
  // Once, not for each of hundreds of hubs.
  static std::atomic<bool> warned = false;
  if (!choice.ignored.empty() && !warned.exchange(true))
    env_.log.warn("proxy ignored: only those with http:// are supported, connecting directly",
                  {{"variable", choice.ignored}, {"server", url_.authority()}});
}

Client::~Client() {
  requests_.clear();
}

Awaitable<Result<Answer>> Client::perform(const WireRequest& request, TimePoint deadline) {
  auto tried = co_await try_until_done(request, deadline, Mode::whole);
  if (!tried) co_return tried.error();
  Answer& answer = tried->answer;
  if (answer.gzip) {
    auto plain = inflate_gzip(answer.body, answer_limit(request));
    if (!plain) co_return about(request, plain.error());
    answer.body = std::move(*plain);
  }
  if (!is_success(answer.status)) co_return error_from_answer(request, answer);
  co_return std::move(answer);
}

Awaitable<Result<Client::Stream>> Client::open_stream(const WireRequest& request) {
  auto tried = co_await try_until_done(request, TimePoint{}, Mode::stream);
  if (!tried) co_return tried.error();
  if (!is_success(tried->answer.status)) co_return error_from_answer(request, tried->answer);
  co_return std::move(tried->stream);
}

Awaitable<Result<Client::Tried>> Client::try_until_done(const WireRequest& request, TimePoint deadline, Mode mode) {
  const bool own_deadline = deadline != TimePoint{};
  if (!co_await admit(request, own_deadline ? deadline : async::never))
    co_return about(request, ErrorKind::unreachable, "the client-side rate limit left no time for it");
  if (!own_deadline) deadline = async::later(env_.clock.now(), options_.request_timeout);

  RetryRules rules{{options_.max_retries, options_.max_retry_after}, request.read_only};
  async::Backoff backoff{retry_pauses, env_.clock, random_};
  bool fresh_connection = false;
  bool files_renewed = false;
  while (true) {
    auto authorization = co_await authorize(deadline);
    if (!authorization) co_return about(request, authorization.error());
    auto tried = co_await attempt(request, *authorization, deadline, mode, fresh_connection);
    if (tried.distrusted && !files_renewed && renew_from_files()) {
      files_renewed = true;
      tried = {};
      continue;
    }
    const NextStep step = rules.after(tried.attempt);
    const auto pause = pause_for(step, tried.attempt, backoff, deadline);
    if (step == NextStep::finish || !pause) {
      if (tried.loss) co_return error_from_loss(request, *tried.loss);
      co_return std::move(tried);
    }

    metrics_.retry(request.verb, tried.attempt.status);
    env_.log.debug("retrying request", {{"request", request.display()},
                                        {"status", tried.attempt.status},
                                        {"reason", tried.loss ? tried.loss->why : std::string{}},
                                        {"pause", *pause}});
    if (step == NextStep::refresh_and_retry) {
      credentials_.invalidate(*authorization);
      renew_from_files();
    }
    fresh_connection = tried.loss.has_value();
    // Others may use the slot meanwhile.
    tried = {};
    if (*pause > async::Duration{0}) co_await env_.clock.sleep_for(*pause);
  }
}

Awaitable<bool> Client::admit(const WireRequest& request, TimePoint deadline) {
  if (deadline <= env_.clock.now()) co_return false;
  if (rate_limit_.try_take()) co_return true;
  const auto waited = co_await async::before_deadline(env_.clock, deadline, rate_limit_.take());
  if (waited) metrics_.rate_limited(request.verb, *waited);
  co_return waited.has_value();
}

Awaitable<Result<std::string>> Client::authorize(TimePoint& deadline) {
  // Only a plugin can take long; a token is available at once.
  if (!config_.exec) co_return co_await credentials_.authorization_header();
  if (config_.exec->person != ExecPlugin::Person::none) {
    // A person logs in: that time is not the request's.
    const TimePoint asked = env_.clock.now();
    auto entered = co_await credentials_.authorization_header();
    renew_certificate();
    deadline = async::later(deadline, env_.clock.now() - asked);
    co_return entered;
  }
  auto header = co_await async::before_deadline(env_.clock, deadline, credentials_.authorization_header());
  renew_certificate();
  if (header) co_return std::move(*header);
  co_return Error{ErrorKind::unauthorized, 0, {}, "the credential plugin did not answer in time", std::nullopt};
}

void Client::renew_certificate() {
  auto current = shared(credentials_.client_certificate());
  const bool same = current != nullptr && certificate_ != nullptr ? *current == *certificate_ : current == certificate_;
  if (!url_.tls || same) return;
  try {
    tls_ = std::make_shared<TlsContext>(config_, url_, current);
    requests_.clear();
    certificate_ = std::move(current);
  } catch (const ConfigError& error) {
    env_.log.warn("certificate from the credential plugin cannot be used",
                  {{"server", url_.authority()}, {"error", error.what()}});
  }
}

bool Client::renew_from_files() {
  ClientConfig fresh = config_;
  const bool files_changed = url_.tls && reread_files(fresh);
  if (!url_.tls || (!files_changed && !tls_->is_outdated())) return false;
  auto certificate = certificate_;
  if (!fresh.client_certificate_pem.empty())
    certificate = shared(ClientCertificate{fresh.client_certificate_pem, fresh.client_key_pem});
  try {
    tls_ = std::make_shared<TlsContext>(fresh, url_, certificate);
  } catch (const ConfigError& error) {
    // For instance a certificate whose key has not been written yet.
    env_.log.warn("renewed certificates cannot be used, keeping the previous ones",
                  {{"server", url_.authority()}, {"error", error.what()}});
    return false;
  }
  requests_.clear();
  config_ = std::move(fresh);
  if (!config_.client_certificate_pem.empty()) credentials_.replace_certificate(*certificate);
  certificate_ = std::move(certificate);
  env_.log.info("certificates reloaded", {{"server", url_.authority()}});
  return true;
}

Awaitable<Client::Tried> Client::attempt(const WireRequest& request, const std::string& authorization,
                                         TimePoint deadline, Mode mode, bool fresh_connection) {
  Tried tried;
  auto& pool = mode == Mode::stream ? watches_ : requests_;
  auto slot = co_await pool.enter(deadline);
  if (!slot) {
    tried.attempt.hopeless = true;
    tried.loss = Loss{Stage::connecting, "connection limit reached: no connection became free in time", true, false};
    co_return tried;
  }
  tried.stream.slot = std::move(*slot);

  const TimePoint start = env_.clock.now();
  const auto tls = tls_;
  std::shared_ptr<Connection> connection;
  if (mode == Mode::whole && !fresh_connection) connection = pool.take();
  tried.attempt.reused_connection = connection != nullptr;
  if (!connection) {
    pool.make_room();
    const TimePoint connect_deadline = std::min(deadline, async::later(start, options_.connect_timeout));
    Route route{url_, proxy_};
    auto& names = options_.names ? *options_.names : NameLookup::of_process();
    auto connected = co_await connect(std::move(route), tls, names, env_.clock, connect_deadline);
    metrics_.lookup(connected.lookup_time);
    if (connected.transport) {
      connection = std::make_shared<Connection>(std::move(connected.transport), loop_, env_.clock);
    } else {
      tried.attempt.hopeless = tried.distrusted = connected.failure.hopeless;
      tried.loss = Loss{Stage::connecting, connected.failure.message, false, false};
    }
  }
  // An answer that does not come, so that the caller gives up: after a fail-over every kept connection may be dead.
  struct ClosesIdleOnTimeout {
    Client& client;
    TimePoint start;
    bool answered = false;
    ~ClosesIdleOnTimeout() {
      if (!answered && client.env_.clock.now() - start >= suspicious_silence) client.requests_.clear();
    }
  } timeout{*this, start};
  // Do not send after the deadline: a write would only become ambiguous.
  if (connection && env_.clock.now() >= deadline)
    tried.loss = Loss{Stage::connecting, "no time was left to send it", true, false};
  else if (connection)
    tried.loss = co_await exchange(connection, request, authorization, deadline, mode, tried.answer);

  timeout.answered = !tried.loss || !tried.loss->out_of_time;
  if (tried.loss && tried.loss->out_of_time) requests_.clear();
  if (tried.loss) {
    tried.attempt.lost_at = tried.loss->stage;
    tried.distrusted |= tried.loss->refused;
    tried.attempt.hopeless |= tried.loss->out_of_time || tried.loss->garbage || tried.loss->refused;
    if (connection) connection->close();
  } else {
    tried.attempt.status = tried.answer.status;
    tried.attempt.retry_after = tried.answer.retry_after;
    if (mode == Mode::stream)
      tried.stream.connection = std::move(connection);
    else if (tls == tls_)
      pool.put_back(std::move(connection));
  }
  metrics_.attempt(request.method, request.verb, tried.attempt.status, env_.clock.now() - start, request.body.size(),
                   tried.answer.body.size());
  co_return tried;
}

Awaitable<std::optional<Loss>> Client::exchange(std::shared_ptr<Connection> connection, const WireRequest& request,
                                                const std::string& authorization, TimePoint deadline, Mode mode,
                                                Answer& answer) {
  const std::string text = request_text(request, authorization);
  const std::size_t body_limit = mode == Mode::stream ? 0 : answer_limit(request);
  auto loss = co_await connection->begin(text, body_limit, deadline, answer);
  if (loss) co_return loss;
  if (mode == Mode::whole) {
    loss = co_await connection->finish(deadline, progress_limit(request), answer.body);
  } else if (!is_success(answer.status)) {
    std::string chunk;
    do {
      loss = co_await connection->read_body(deadline, chunk);
      answer.body += chunk;
    } while (!loss && !chunk.empty() && answer.body.size() < max_refusal);
  }
  co_return loss;
}

void Client::skipped(const WireRequest& request, const Error& error) {
  metrics_.skipped_object();
  constexpr std::size_t most_paths = 1000;
  if (skipped_paths_.size() < most_paths && skipped_paths_.insert(request.path).second)
    env_.log.warn("object left out: it cannot be decoded",
                  {{"request", request.display()}, {"error", error.describe()}});
}

std::size_t Client::answer_limit(const WireRequest& request) const {
  return request.verb == "LIST" ? options_.max_answer : std::min(options_.max_answer, options_.max_object);
}

async::Duration Client::progress_limit(const WireRequest& request) const {
  return request.slow_answer ? options_.request_timeout : async::Duration{0};
}

std::optional<async::Duration> Client::pause_for(NextStep step, const Attempt& attempt, async::Backoff& backoff,
                                                 TimePoint deadline) {
  async::Duration pause{0};
  switch (step) {
    case NextStep::finish:
    case NextStep::retry_now:
    case NextStep::refresh_and_retry:
      return pause;
    case NextStep::retry_after_backoff:
      pause = backoff.next();
      break;
    case NextStep::retry_after_server_delay:
      // Plus jitter: the server sends every client the same Retry-After.
      pause = random_.between(*attempt.retry_after, *attempt.retry_after + *attempt.retry_after / 4);
      if (*attempt.retry_after == async::Duration{0}) pause = backoff.next();
      break;
  }
  if (async::later(env_.clock.now(), pause) >= deadline) return std::nullopt;
  return pause;
}

std::string Client::request_text(const WireRequest& request, const std::string& authorization) const {
  std::string text;
  text.reserve(512 + authorization.size() + request.path.size() + request.query.size() + request.body.size());
  text.append(request.method).append(" ").append(url_.prefix).append(request.path).append(request.query);
  text.append(fixed_headers_);
  if (!authorization.empty()) text.append("Authorization: ").append(authorization).append("\r\n");
  if (request.gzip) text.append("Accept-Encoding: gzip\r\n");
  if (!request.content_type.empty()) {
    text.append("Content-Type: ").append(request.content_type).append("\r\nContent-Length: ");
    text.append(std::to_string(request.body.size())).append("\r\n");
  }
  // One piece: a TLS record and a packet where it fits.
  text.append("\r\n").append(request.body);
  return text;
}

Error about(const WireRequest& request, Error error) {
  error.message = request.display() + (error.message.empty() ? "" : ": " + error.message);
  return error;
}

Error about(const WireRequest& request, ErrorKind kind, std::string message) {
  return about(request, Error{kind, 0, {}, std::move(message), std::nullopt});
}

Error error_from_answer(const WireRequest& request, const Answer& answer) {
  Error error = error_from_status(answer.status, answer.body);
  if (!error.retry_after) error.retry_after = answer.retry_after;
  if (!request.read_only) error = as_answer_to_write(std::move(error));
  return about(request, std::move(error));
}

Error error_from_loss(const WireRequest& request, const Loss& loss) {
  const bool sent = (loss.stage == Stage::waiting || loss.stage == Stage::answering) && !loss.refused;
  if (sent && !request.read_only)
    return about(request, ErrorKind::ambiguous, loss.why + "; it was sent, and may or may not have taken effect");
  return about(request, loss.garbage ? ErrorKind::bad_response : ErrorKind::unreachable, loss.why);
}

}  // namespace hubferry::kube::http
