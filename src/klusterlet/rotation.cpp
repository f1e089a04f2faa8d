#include "hubferry/ocm/resources.hpp"
#include "klusterlet/enrolment.hpp"
#include "klusterlet/session.hpp"

// The certificate's end: a new one in time, or the end of the session.
namespace hubferry::klusterlet {

namespace {

constexpr auto longest_check_period = std::chrono::minutes{5};
// However short certificates are, a hub is not asked for one after the other.
constexpr auto least_session = std::chrono::seconds{10};

}  // namespace

Awaitable<> Session::rotate() {
  auto& env = agent_.env;
  if (!agent_.validity) {
    end(Leave{LeaveReason::certificate_expired, "the certificate cannot be read"});
    co_return;
  }
  const auto validity = *agent_.validity;
  const auto expiry = monotonic(env.clock, validity.until);
  const auto first =
      std::max(monotonic(env.clock, first_rotation_check(validity)), async::later(env.clock.now(), least_session));
  co_await env.clock.sleep_until(std::min(first, expiry));
  const auto spread = most_remaining - least_remaining;
  while (env.clock.now() < expiry &&
         !is_due_for_rotation(validity, env.clock.wall_now(), least_remaining + env.random.fraction() * spread)) {
    // Often enough to hit the window, however narrow it is.
    const Duration window = std::chrono::duration_cast<Duration>((validity.until - validity.from) * spread);
    const Duration pause = std::min<Duration>(longest_check_period, window / 4 + std::chrono::seconds{1});
    co_await env.clock.sleep_until(std::min(async::later(env.clock.now(), pause), expiry));
  }
  const bool replaced = co_await wait_until(env.clock, expiry, replace_certificate());
  if (replaced) {
    end(std::nullopt);
  } else {
    end(Leave{LeaveReason::certificate_expired,
              "the certificate expired at " + async::format_time(validity.until) + " and could not be renewed"});
  }
}

Awaitable<> Session::replace_certificate() {
  EnrolmentOptions options;
  options.identity = agent_.identity();
  options.lifetime = agent_.certificate_lifetime();
  options.tell = [this](std::string_view reason, const std::string& note) {
    const bool bad = reason != "CSRCreated";
    tell(bad ? kube::EventType::warning : kube::EventType::normal, reason, note);
    if (!bad) return;
    certificate_condition_ = kube::Condition{.type = ocm::names::certificate_rotated,
                                             .status = kube::ConditionStatus::no,
                                             .reason = std::string{reason},
                                             .message = note};
    status_changed_.notify();
  };
  auto enrolled = co_await enrol(*api_, std::move(options), agent_.env);
  HubSecret secret = *agent_.secret;
  secret.certificate = std::move(enrolled.certificate);
  secret.key = std::move(enrolled.key);
  co_await agent_.save_secret(std::move(secret));
}

}  // namespace hubferry::klusterlet
