#include "kube/control/lease_machine.hpp"

#include <algorithm>

namespace hubferry::kube {

namespace {

/// A candidate's tries are spread over [retry_period, 2.2 * retry_period), so that candidates do not run in step.
constexpr double jitter = 1.2;

std::int64_t integer_at(const Object& lease, std::string_view field) {
  const auto* found = lease.find({"spec", field});
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

bool same_spec(const Object& left, const Object& right) {
  const auto* a = left.find({"spec"});
  const auto* b = right.find({"spec"});
  return (a == nullptr) == (b == nullptr) && (a == nullptr || *a == *b);
}

}  // namespace

LeaseMachine::LeaseMachine(LeaderElectionOptions options, async::Random& random, std::int64_t transitions)
    : options_(std::move(options)), random_(random), transitions_(transitions) {}

void LeaseMachine::take(std::optional<Object> lease) {
  lease_ = std::move(lease);
  if (lease_) transitions_ = std::max(transitions_, integer_at(*lease_, "leaseTransitions"));
}

std::string LeaseMachine::holder() const {
  return lease_ ? std::string{lease_->string_at({"spec", "holderIdentity"})} : std::string{};
}

TimePoint LeaseMachine::expiry() const {
  if (options_.takeover_after > Duration::zero()) return async::later(seen_at_, options_.takeover_after);
  // The holder's own promise counts; a Lease without one is judged by ours.
  const std::int64_t promised = integer_at(*lease_, "leaseDurationSeconds");
  return async::later(seen_at_, promised > 0 ? Duration{std::chrono::seconds{promised}} : options_.lease_duration);
}

TimePoint LeaseMachine::after_retry_period(TimePoint now) {
  // A leader renews on the beat; its deadline leaves room for a few tries only.
  if (state_ == LeaseState::leading) return async::later(now, options_.retry_period);
  const auto spread = std::chrono::duration_cast<Duration>(options_.retry_period * (jitter * random_.fraction()));
  return async::later(now, options_.retry_period + spread);
}

LeaseMachine::Action LeaseMachine::next(TimePoint now, async::WallTime wall) {
  if (state_ == LeaseState::leading && now >= leads_until_) state_ = LeaseState::lost;
  if (state_ == LeaseState::lost) return Stop{};
  if (now < not_before_) {
    return Pause{state_ == LeaseState::leading ? std::min(not_before_, leads_until_) : not_before_};
  }
  if (must_read_) return Read{};
  if (!lease_) return Create{claim(wall)};
  if (holder().empty() || held_by_us() || now >= expiry()) return Update{claim(wall)};
  // Another process leads: read again when its Lease may have expired.
  must_read_ = true;
  not_before_ = std::min(after_retry_period(now), expiry());
  return Pause{not_before_};
}

json::object LeaseMachine::claim(async::WallTime wall) const {
  json::object lease = lease_ ? lease_->json() : json::object{};
  if (!lease_) lease["metadata"] = json::object{{"name", options_.name}, {"namespace", options_.ns}};
  auto& spec = object_in(lease, "spec");
  const bool renewal = state_ == LeaseState::leading;
  const std::string now = async::format_micro_time(wall);
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = std::chrono::ceil<std::chrono::seconds>(options_.lease_duration).count();
  spec["renewTime"] = now;
  if (!renewal) {
    spec["acquireTime"] = now;
    // Also when the Lease names us already: a claim whose answer got lost is a new term, and so is a restart.
    spec["leaseTransitions"] = transitions_ + 1;
  } else {
    // Deleted under a leader: the same term continues in a new object.
    if (!lease_) spec["acquireTime"] = now;
    spec["leaseTransitions"] = std::max(epoch_, wanted_epoch_);
  }
  return lease;
}

std::optional<json::object> LeaseMachine::released(async::WallTime wall) const {
  if (!lease_ || !held_by_us()) return std::nullopt;
  json::object lease = lease_->json();
  auto& spec = lease["spec"].get_object();
  const std::string now = async::format_micro_time(wall);
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;
  spec["renewTime"] = now;
  spec["acquireTime"] = now;
  return lease;
}

void LeaseMachine::on_read(std::optional<Object> lease, TimePoint now) {
  const bool changed = lease.has_value() != lease_.has_value() || (lease && !same_spec(*lease, *lease_));
  if (changed) seen_at_ = now;
  take(std::move(lease));
  must_read_ = false;
  // A deleted Lease is still ours to create again; one that names another is not.
  if (state_ != LeaseState::leading || !lease_) return;
  if (is_of_our_term(*lease_))
    epoch_ = integer_at(*lease_, "leaseTransitions");
  else
    state_ = LeaseState::lost;
}

bool LeaseMachine::is_of_our_term(const Object& lease) const {
  const auto number = integer_at(lease, "leaseTransitions");
  // The other number is that of a renewal whose answer got lost.
  return lease.string_at({"spec", "holderIdentity"}) == options_.identity &&
         (number == epoch_ || (wanted_epoch_ > epoch_ && number == wanted_epoch_));
}

void LeaseMachine::on_written(Object lease, TimePoint started, TimePoint now) {
  if (lease.string_at({"spec", "holderIdentity"}) != options_.identity) {
    // Not the answer to our write, which names us: whether that happened, only a read can tell.
    on_failure({ErrorKind::ambiguous, 0, {}, "the Lease in the answer names another holder", std::nullopt}, now);
    return;
  }
  take(std::move(lease));
  seen_at_ = now;
  must_read_ = false;
  hurried_ = false;
  not_before_ = async::later(started, options_.retry_period);
  if (state_ == LeaseState::lost) return;
  epoch_ = integer_at(*lease_, "leaseTransitions");
  leads_until_ = async::later(started, options_.renew_deadline);
  // A response after its own deadline is void: claim again.
  if (state_ == LeaseState::following && now >= leads_until_) return;
  state_ = LeaseState::leading;
}

void LeaseMachine::on_failure(const Error& error, TimePoint now) {
  must_read_ = true;
  // After a conflict a leader reads at once, since its time runs out; a follower has lost that race.
  const bool stale = error.kind == ErrorKind::conflict || error.kind == ErrorKind::ambiguous ||
                     error.kind == ErrorKind::already_exists || error.kind == ErrorKind::not_found;
  const bool urgent = stale && (state_ == LeaseState::leading || error.kind == ErrorKind::ambiguous);
  // A server that answers every write like that would be called in a busy loop.
  hurried_ = urgent && !hurried_;
  not_before_ = hurried_ ? now : after_retry_period(now);
}

}  // namespace hubferry::kube
