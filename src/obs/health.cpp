#include "hubferry/obs/health.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/loop_pulse.hpp"

namespace hubferry::obs {

namespace {

std::optional<std::string> ask(const Health::Check& check) {
  try {
    return check();
  } catch (...) {
    return async::describe(std::current_exception());
  }
}

/// A reason may quote what another machine sent: it must not be able to add lines to the answer.
std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

bool fits_into_url(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

}  // namespace

Health::Health() {
  const auto ping = [] { return std::nullopt; };
  add(liveness_, {.name = "ping", .check = ping});
  add(readiness_, {.name = "ping", .check = ping});
  const auto not_stopping = [stopping = stopping_]() -> std::optional<std::string> {
    if (stopping->load()) return "stopping";
    return std::nullopt;
  };
  add(readiness_, {.name = "shutdown", .check = not_stopping, .reason_is_public = true});
}

void Health::add_liveness(std::string name, Check check) {
  add(liveness_, {.name = std::move(name), .check = std::move(check)});
}

void Health::add_readiness(std::string name, Check check) {
  add(readiness_, {.name = std::move(name), .check = std::move(check)});
}

void Health::add(Checks& checks, NamedCheck check) {
  if (!fits_into_url(check.name))
    throw std::logic_error("health check '" + check.name + "': use letters, digits, '-', '_' and '.'");
  const std::lock_guard lock{mutex_};
  for (const auto& known : checks)
    if (known->name == check.name) throw std::logic_error("health check '" + check.name + "' exists already");
  checks.push_back(std::make_shared<const NamedCheck>(std::move(check)));
}

HttpResponse Health::answer(const HttpRequest& request) const {
  constexpr std::string_view hint = "this server has /livez, /readyz and /healthz";
  std::string_view path = request.path;
  if (!path.starts_with('/')) return HttpResponse::not_found(std::string(hint));
  path.remove_prefix(1);
  const auto slash = path.find('/');
  const std::string group{path.substr(0, slash)};
  const std::string_view name = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);

  Checks checks;
  {
    const std::lock_guard lock{mutex_};
    if (group == "livez" || group == "healthz")
      checks = liveness_;
    else if (group == "readyz")
      checks = readiness_;
    else
      return HttpResponse::not_found(std::string(hint));
  }
  if (name.empty()) return answer_all(group, checks, request);
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const auto& check) { return check->name == name; });
  if (found == checks.end()) return HttpResponse::not_found("no such check in " + group);
  return answer_one(**found, request.has_query("verbose"));
}

HttpHandler Health::handler() const {
  return [this](const HttpRequest& request) { return answer(request); };
}

HttpResponse Health::answer_all(const std::string& group, const Checks& checks, const HttpRequest& request) {
  const bool verbose = request.has_query("verbose");
  auto excluded = request.query_values("exclude");
  bool passed = true;
  std::string list;
  for (const auto& check : checks) {
    if (std::erase(excluded, check->name) > 0) {
      list += "[+]" + check->name + " excluded: ok\n";
      continue;
    }
    const auto reason = ask(check->check);
    if (!reason) {
      list += "[+]" + check->name + " ok\n";
      continue;
    }
    passed = false;
    const bool show = verbose || check->reason_is_public;
    list += "[-]" + check->name + " failed: " + (show ? one_line(*reason) : "reason withheld") + "\n";
  }
  if (!excluded.empty()) {
    list += "warn: some health checks cannot be excluded: no matches for";
    for (const auto& name : excluded) list += " \"" + one_line(name) + '"';
    list += '\n';
  }
  if (!passed) return {.status = 500, .body = list + group + " check failed\n"};
  return {.body = verbose ? list + group + " check passed\n" : "ok"};
}

HttpResponse Health::answer_one(const NamedCheck& check, bool verbose) {
  const auto reason = ask(check.check);
  if (!reason) return {.body = "ok"};
  const bool show = verbose || check.reason_is_public;
  return {.status = 500,
          .body = "[-]" + check.name + " failed: " + (show ? one_line(*reason) : "reason withheld") + "\n"};
}

struct CheckState::Shared {
  std::mutex mutex;
  std::optional<std::string> reason;
};

CheckState::CheckState(std::string reason) : shared_(std::make_shared<Shared>()) {
  shared_->reason = std::move(reason);
}

void CheckState::pass() {
  const std::lock_guard lock{shared_->mutex};
  shared_->reason.reset();
}

void CheckState::fail(std::string reason) {
  const std::lock_guard lock{shared_->mutex};
  shared_->reason = std::move(reason);
}

Health::Check CheckState::check() const {
  return [shared = shared_] {
    const std::lock_guard lock{shared->mutex};
    return shared->reason;
  };
}

LoopPulse::LoopPulse(async::Clock& clock, Timing timing) : clock_(clock), timing_(timing), last_beat_(clock.now()) {}

async::Awaitable<> LoopPulse::run() {
  for (;;) {
    beat();
    co_await clock_.sleep_for(timing_.beat);
  }
}

Health::Check LoopPulse::check() const {
  return [this]() -> std::optional<std::string> {
    const auto silence = clock_.now() - last_beat_.load();
    if (silence < timing_.stuck_after) return std::nullopt;
    return "the event loop has been blocked for " + async::format_duration(silence);
  };
}

}  // namespace hubferry::obs
