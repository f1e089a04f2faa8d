#include "hubferry/sim/faults.hpp"

#include <algorithm>
#include <cmath>

namespace hubferry::sim {

async::Duration Latency::draw(async::Random& random) const {
  switch (shape) {
    case Shape::uniform:
      return random.between(low, high);
    case Shape::exponential: {
      const double factor = -std::log(1.0 - random.fraction());
      return low + async::Duration{static_cast<async::Duration::rep>(factor * static_cast<double>(high.count()))};
    }
    case Shape::fixed:
      break;
  }
  return low;
}

FaultRule& FaultRule::times(std::uint64_t count) {
  left_ = count;
  return *this;
}

FaultRule& FaultRule::rate(double probability) {
  left_.reset();
  probability_ = probability;
  return *this;
}

FaultRule& FaultRule::after(std::uint64_t count) {
  skip_ = count;
  return *this;
}

FaultRule& FaultRule::fail(int status, std::optional<int> retry_after_seconds) {
  effect_ = Effect::fail;
  status_ = status;
  retry_after_ = retry_after_seconds;
  return *this;
}

FaultRule& FaultRule::delay(Latency latency) {
  effect_ = Effect::delay;
  latency_ = latency;
  return *this;
}

FaultRule& FaultRule::reset_before() {
  effect_ = Effect::reset_before;
  return *this;
}

FaultRule& FaultRule::reset_after() {
  effect_ = Effect::reset_after;
  return *this;
}

FaultRule& FaultRule::stale(std::int64_t versions) {
  effect_ = Effect::stale;
  versions_ = versions;
  return *this;
}

FaultRule& FaultRule::drop_event() {
  effect_ = Effect::drop_event;
  return *this;
}

FaultRule& FaultRule::delay_event(Latency latency) {
  effect_ = Effect::delay_event;
  latency_ = latency;
  return *this;
}

FaultRule& FaultRule::cut_watch() {
  effect_ = Effect::cut_watch;
  return *this;
}

FaultRule& FaultRule::compact() {
  effect_ = Effect::compact;
  return *this;
}

FaultRule& Faults::on(FaultTarget target) {
  auto& rule = rules_.emplace_back();
  rule.target_ = std::move(target);
  return rule;
}

void Faults::outage(bool down) {
  down_ = down;
}

void Faults::clear() {
  rules_.clear();
  down_ = false;
}

std::string Faults::unused() const {
  std::string text;
  for (const auto& rule : rules_)
    if (rule.left_.value_or(0) > 0)
      text += (rule.target_.verb.empty() ? "any verb" : rule.target_.verb) + " " +
              (rule.target_.resource.empty() ? "any resource" : rule.target_.resource) + ": " +
              std::to_string(*rule.left_) + " left\n";
  return text;
}

bool Faults::applies(FaultRule& rule, const Seen& seen) {
  const auto& target = rule.target_;
  const auto fits = [](const std::string& wanted, std::string_view given) { return wanted.empty() || wanted == given; };
  const bool reads = seen.verb == "get" || seen.verb == "list" || seen.verb == "watch";
  const bool verb_fits =
      fits(target.verb, seen.verb) || (target.verb == "read" && reads) || (target.verb == "write" && !reads);
  // The verb of an event rule is "watch" or empty, as in `seen`.
  if (!verb_fits || !fits(target.resource, seen.resource) || !fits(target.subresource, seen.subresource) ||
      !fits(target.ns, seen.ns) || !fits(target.name, seen.name))
    return false;
  if (rule.left_ && *rule.left_ == 0) return false;
  if (rule.skip_ > 0) {
    --rule.skip_;
    return false;
  }
  if (rule.probability_ < 1.0 && !random_.chance(rule.probability_)) return false;
  if (rule.left_) --*rule.left_;
  return true;
}

Faults::Decision Faults::decide(const Seen& request) {
  Decision decision;
  if (down_) {
    decision.reset_before = true;
    return decision;
  }
  using Effect = FaultRule::Effect;
  for (auto& rule : rules_) {
    if (rule.concerns_events() || rule.effect_ == Effect::none) continue;
    if (rule.effect_ == Effect::stale && request.verb != "list") continue;
    if (!applies(rule, request)) continue;
    switch (rule.effect_) {
      case Effect::fail:
        decision.status = rule.status_;
        decision.retry_after_seconds = rule.retry_after_;
        return decision;
      case Effect::delay:
        decision.latency += rule.latency_.draw(random_);
        break;
      case Effect::reset_before:
        decision.reset_before = true;
        return decision;
      case Effect::reset_after:
        decision.reset_after = true;
        return decision;
      case Effect::stale:
        decision.stale_versions = rule.versions_;
        break;
      case Effect::compact:
        decision.compact = true;
        break;
      default:
        break;
    }
  }
  return decision;
}

Faults::EventDecision Faults::decide_event(const Seen& object) {
  EventDecision decision;
  using Effect = FaultRule::Effect;
  for (auto& rule : rules_) {
    if (!rule.concerns_events() || !applies(rule, object)) continue;
    if (rule.effect_ == Effect::delay_event) {
      decision.latency += rule.latency_.draw(random_);
      continue;
    }
    decision.drop = rule.effect_ == Effect::drop_event;
    decision.cut = rule.effect_ == Effect::cut_watch;
    return decision;
  }
  return decision;
}

}  // namespace hubferry::sim
