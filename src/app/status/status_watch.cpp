#include "app/status/status_watch.hpp"

#include <boost/json/serialize.hpp>
#include <ostream>

#include "app/cli/output.hpp"
#include "app/cli/server_client.hpp"
#include "app/status/migration_view.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::app {

using namespace std::chrono_literals;

namespace {

kube::CacheOptions cache_options(const StatusWatchOptions& options) {
  kube::CacheOptions cache;
  cache.ns = options.only ? options.only->ns : options.ns;
  if (options.only) cache.field_selector = "metadata.name=" + options.only->name;
  return cache;
}

constexpr int exit_code_when_stopped = 130;

/// How often it is asked whether the server answers, and how long an answer may take.
constexpr auto probe_interval = 5s;

/// A restart of the API server, or an upgrade of its node, takes less. Then somebody has to know: a script would wait
/// for ever. A credential that the server rejects does not get better by itself, but a login in another window helps.
constexpr auto longest_silence = 5min;
constexpr auto longest_rejection = 30s;

/// A burst of events is drawn once.
constexpr auto min_draw_interval = 50ms;

}  // namespace

StatusWatch::StatusWatch(kube::Api& api, StatusWatchOptions options, kube::Env env, std::function<Terminal()> terminal,
                         std::ostream& out)
    : api_(api),
      options_(std::move(options)),
      env_(env),
      terminal_(std::move(terminal)),
      out_(out),
      in_place_(terminal_().interactive && (options_.output == "table" || options_.output == "wide")),
      area_(out, terminal_()),
      migrations_(api, migration::managed_cluster_migrations, cache_options(options_), kube::object_decoder(), env) {}

async::Awaitable<int> StatusWatch::run(async::Event& stop) {
  auto body = [this, &stop](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(migrations_.run());
    scope.spawn(follow(scope));
    scope.spawn(probe(scope));
    if (in_place_) scope.spawn(tick());
    co_await stop.wait();
    scope.stop();
  };
  co_await async::with_scope(body);
  if (is_drawn_) print_final();
  if (gave_up_ && !over_) throw_for(*server_error_, api_);
  // Stopped before the one migration has ended: its result is unknown.
  if (options_.only && !over_) co_return exit_code_when_stopped;
  co_return code_;
}

async::Awaitable<> StatusWatch::follow(async::TaskScope& scope) {
  co_await migrations_.wait_synced();
  const auto subscription = migrations_.subscribe(
      [this](const kube::Key& key, const auto&, const auto& now) { on_change(key, now); }, kube::Replay::existing);
  if (options_.only && migrations_.get(*options_.only) == nullptr) {
    // Deleted before the watch began: no event will come. Or created just before: a list may be from a cache that is
    // behind, so the server itself is asked.
    const auto read = co_await api_.get(migration::managed_cluster_migrations, *options_.only);
    const bool is_gone = !read && read.error().kind == kube::ErrorKind::not_found;
    if (is_gone && migrations_.get(*options_.only) == nullptr) on_change(*options_.only, nullptr);
  }
  changed_.notify();
  for (;;) {
    co_await changed_.wait();
    flush(out_);
    if (in_place_) {
      co_await read_ledger();
      draw();
    }
    if (over_) break;
    co_await env_.clock.sleep_for(min_draw_interval);
  }
  scope.stop();
}

async::Awaitable<> StatusWatch::tick() {
  for (;;) {
    co_await env_.clock.sleep_for(1s);
    changed_.notify();
  }
}

async::Awaitable<> StatusWatch::probe(async::TaskScope& scope) {
  while (!gave_up_) {
    co_await env_.clock.sleep_for(probe_interval);
    const auto deadline = async::later(env_.clock.now(), probe_interval);
    const auto answer = co_await async::before_deadline(env_.clock, deadline, api_.get_path("/version"));
    if (!answer)
      set_server_error(kube::Error{kube::ErrorKind::unreachable,
                                   0,
                                   {},
                                   "no answer within " + async::format_duration(probe_interval),
                                   std::nullopt});
    else if (!*answer && answer->error().kind != kube::ErrorKind::forbidden)
      set_server_error(answer->error());
    else
      set_server_error(std::nullopt);
  }
  scope.stop();
}

void StatusWatch::set_server_error(std::optional<kube::Error> error) {
  const bool is_news = error.has_value() != server_error_.has_value();
  server_error_ = std::move(error);
  if (!is_news) {
    if (!server_error_) return;
    const bool rejected = server_error_->kind == kube::ErrorKind::unauthorized;
    const auto longest = rejected ? async::Duration{longest_rejection} : longest_silence;
    gave_up_ = env_.clock.now() - *silent_since_ >= longest;
    return;
  }
  silent_since_ = server_error_ ? std::optional{env_.clock.now()} : std::nullopt;
  // json and yaml are for programs: they get objects only.
  if (!in_place_ && (options_.output == "table" || options_.output == "wide"))
    out_ << async::format_time(env_.clock.wall_now()) << " "
         << (server_error_ ? "the API server does not answer: " + fitted(server_error_->message, 0)
                           : "the API server answers again")
         << "\n";
  // Until the first list nobody else prints: a server that is dead from the beginning would be waited for in silence.
  if (!migrations_.synced() && in_place_) draw();
  out_.flush();
  changed_.notify();
}

void StatusWatch::on_change(const kube::Key& key, const std::shared_ptr<const kube::Object>& now) {
  const bool is_the_one = options_.only && key == *options_.only;
  // It has ended, and was deleted before that was drawn, as by a short TTL: its result stays.
  if (is_the_one && now == nullptr && ended_ != nullptr) return;
  if (!in_place_) print_change(key, now.get());
  if (is_the_one) {
    const auto view = now != nullptr ? view_of(*now) : MigrationView{};
    over_ = now == nullptr || view.has_ended();
    ended_ = over_ ? now : nullptr;
    code_ = over_ && !view.has_succeeded() ? 1 : 0;
  }
  changed_.notify();
}

void StatusWatch::print_change(const kube::Key& key, const kube::Object* now) {
  auto text = change_text(key, now);
  if (text.empty() || printed_[key] == text) return;
  if (options_.output == "json" || options_.output == "yaml")
    out_ << text;
  else
    out_ << async::format_time(env_.clock.wall_now()) << " " << text << "\n";
  printed_[key] = std::move(text);
  out_.flush();  // a closed output is detected elsewhere: a cache's handler must not throw
}

std::string StatusWatch::change_text(const kube::Key& key, const kube::Object* now) const {
  const bool is_whole = options_.output == "json" || options_.output == "yaml";
  if (!is_whole) return now != nullptr ? migration_line(view_of(*now)) : kube::to_string(key) + " was deleted";
  if (now == nullptr) return "";
  const auto object = in_usual_order(now->json());
  return options_.output == "json" ? kube::json::serialize(object) + "\n" : "---\n" + to_yaml(object);
}

std::shared_ptr<const kube::Object> StatusWatch::the_one() const {
  const auto migration = migrations_.get(*options_.only);
  return migration != nullptr ? migration : ended_;
}

async::Awaitable<> StatusWatch::read_ledger() {
  if (!options_.only) co_return;
  const auto migration = the_one();
  if (migration == nullptr) co_return;
  const auto failed = view_of(*migration).clusters.failed + view_of(*migration).clusters.rolled_back;
  if (failed == failed_known_ || failed == 0) co_return;
  auto ledger = co_await api_.get(kube::resources::config_maps, *options_.only);
  if (!ledger) co_return;
  ledger_ = *ledger;
  failed_known_ = failed;
}

void StatusWatch::draw() {
  const auto screen = terminal_();
  area_.resize(screen);
  auto lines = render(screen, false);
  // Last, where it is seen also if the lines above do not fit.
  if (silent_since_) {
    const auto silence = short_duration(env_.clock.now() - *silent_since_);
    const auto text =
        fitted("The API server does not answer since " + silence + ": " + server_error_->message, screen.width);
    lines.push_back(painted(text, Colour::red, screen.colour));
  }
  area_.draw(lines, silent_since_ ? 1 : 0);
  is_drawn_ = true;
}

std::vector<std::string> StatusWatch::render(const Terminal& screen, bool is_final) const {
  const auto now = env_.clock.wall_now();
  if (!migrations_.synced())
    return is_final ? std::vector<std::string>{} : std::vector<std::string>{"No migrations read yet."};
  if (options_.only) {
    const auto migration = the_one();
    if (migration == nullptr) return {"Migration " + kube::to_string(*options_.only) + " was deleted."};
    auto view = view_of(*migration);
    add_failures(view, ledger_);
    const auto most_clusters = is_final ? view.failures.size() : default_listed_clusters;
    return migration_details(view, migration_checklist(view, !is_final), now, screen, most_clusters);
  }
  std::vector<MigrationView> views;
  migrations_.for_each([&](const kube::Key&, const auto& migration) { views.push_back(view_of(*migration)); });
  if (views.empty()) return {"No migrations yet."};
  return migration_table(std::move(views), {options_.output == "wide", options_.namespaces}, now, screen);
}

void StatusWatch::print_final() {
  auto unlimited = terminal_();
  unlimited.width = 0;
  unlimited.height = 0;
  area_.erase();
  for (const auto& line : render(unlimited, true)) out_ << line << "\n";
  flush(out_);
}

}  // namespace hubferry::app
