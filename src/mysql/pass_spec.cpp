// What a person wants: the spec as far as it is valid, and servers that were given up.
#include <algorithm>

#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : std::string{text} + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      name += c;
    } else if (!name.empty()) {
      names.push_back(std::exchange(name, {}));
    }
  }
  return names;
}

}  // namespace

/// An invalid edit must not stop a cluster that runs, least of all its failover.
Awaitable<> Pass::check_spec() {
  std::optional<PassError> first;
  for (const auto& problem : problems_of(spec_, owner_.ns)) {
    try {
      keep_in_force(problem);
    } catch (const PassError& error) {
      if (error.is_fatal()) throw;
      if (!first) first = error;
    }
  }
  if (first) throw *first;
  co_return;
}

/// What the servers have stays in force for this field. Without a primary there is nothing to keep: it has failed.
void Pass::keep_in_force(const SpecProblem& problem) {
  if (cluster_.primary().empty()) throw PassError(PassError::Kind::fatal, problem.text);
  const auto secret = root_secret_in_use();
  const bool is_known = problem.field == SpecProblem::Field::root_password ? !secret.empty() : set_.has_value();
  if (!is_known)
    throw PassError(PassError::Kind::retry, problem.text + "; StatefulSet " + owner_.name + " does not exist");
  switch (problem.field) {
    case SpecProblem::Field::version:
      spec_.version = set_->string_at({"spec", "template", "metadata", "annotations", names::version_annotation});
      break;
    case SpecProblem::Field::storage_size:
      spec_.storage_size = storage_of(*set_);
      break;
    case SpecProblem::Field::root_password:
      spec_.root_password = obs::Secret{"ref://" + secret};
      break;
  }
  refused_ += (refused_.empty() ? "" : "; ") + problem.text;
}

/// A pod whose volume names a claim that does not exist never starts: also one that only starts again.
Awaitable<> Pass::check_restore_claim() {
  if (spec_.restore_claim.empty()) co_return;
  auto claim = co_await services_.api.get(kinds::persistent_volume_claims, {owner_.ns, spec_.restore_claim});
  if (claim) co_return;
  if (claim.error().kind != kube::ErrorKind::not_found) take(claim, "PersistentVolumeClaim " + spec_.restore_claim);
  lacks_restore_claim_ = true;
}

void Pass::report_spec() {
  const auto* last = kube::find_condition_in_status(cluster_.status, conditions::spec_accepted);
  const bool was_refused = last != nullptr && kube::string_at(*last, {"status"}) == "False";
  std::string message;
  if (!refused_.empty()) message = refused_ + ": what the servers have stays in force";
  if (lacks_restore_claim_)
    message += (message.empty() ? "" : "; ") + ("PersistentVolumeClaim " + spec_.restore_claim) +
               " of spec.restoreFrom does not exist: no server can start without it";
  const auto pending = pending_.empty() ? "" : (message.empty() ? "" : "; ") + pending_;
  if (!message.empty()) {
    const auto* reason = lacks_restore_claim_ ? reasons::restore_claim_missing : reasons::spec_invalid;
    message += pending;
    if (!was_refused || kube::string_at(*last, {"message"}) != message) warn(reason, message);
    set(conditions::spec_accepted, ConditionStatus::no, reason, message);
  } else if (!pending.empty()) {
    // Nothing is wrong with it: no warning.
    set(conditions::spec_accepted, ConditionStatus::no, reasons::change_pending, pending);
  } else if (was_refused) {
    set(conditions::spec_accepted, ConditionStatus::yes, reasons::spec_valid, "all of the spec is in force");
  }
}

/// First the status has it, then the annotation goes: a successor finds one of them.
Awaitable<> Pass::read_give_up() {
  const auto text = cluster_.object.annotation(names::give_up_annotation);
  if (text.empty()) co_return;
  const auto wanted = names_in(text);
  const bool is_usable = !wanted.empty() && std::ranges::all_of(wanted, [&](const std::string& pod) {
    return ordinal_of(owner_.name, pod) && pod != cluster_.primary();
  });
  if (is_usable && cluster_.given_up() != wanted) {
    cluster_.set_given_up(wanted);
    warn("ServersGivenUp", "a failover continues without " + std::string{text} + " and what only they have received");
    co_return;
  }
  if (!is_usable) warn("GiveUpRefused", std::string{text} + " does not name replicas of this cluster");
  co_await remove_annotation(names::give_up_annotation);
}

/// With a healthy primary there is nothing to continue: the consent was for one failure.
Awaitable<> Pass::forget_given_up() {
  if (!cluster_.object.annotation(names::give_up_annotation).empty())
    co_await remove_annotation(names::give_up_annotation);
  cluster_.set_given_up({});
}

bool Pass::is_given_up(const std::string& pod) const {
  return std::ranges::find(given_up_, pod) != given_up_.end();
}

}  // namespace hubferry::mysql
