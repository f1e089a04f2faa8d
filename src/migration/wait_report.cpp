#include "migration/wait_report.hpp"

#include <array>
#include <set>

#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

constexpr const char* progress_mark = " - ";
constexpr const char* waits_mark = "; waiting: ";
// Half of the time within which a wait has to be visible: a trouble is recognised within the other half.
constexpr Duration look_interval = std::chrono::milliseconds{500};

void add(std::string& text, const std::string& part) {
  if (part.empty() || text.find(part) != std::string::npos) return;
  text += (text.empty() ? "" : "; ") + part;
}

/// The message without what a wait report has put behind it. What this process has put there is known. What a previous
/// one left is recognised by its form: a message of a hub may have a dash too.
std::string base_of(const Step& step, const std::string& message) {
  const auto& added = step.wait_suffix();
  if (added) return message.ends_with(*added) ? message.substr(0, message.size() - added->size()) : message;
  auto end = message.find(waits_mark);
  for (auto at = message.find(progress_mark); at < end; at = message.find(progress_mark, at + 1)) {
    const auto from = at + std::string_view{progress_mark}.size();
    const auto number = message.find_first_not_of("0123456789", from);
    if (number != from && number != std::string::npos && message.compare(number, 4, " of ") == 0) end = at;
  }
  return message.substr(0, end);
}

bool is_waiting(std::string_view reason) {
  return reason == reasons::waiting || reason == reasons::rollback_pending || reason == reasons::cleanup_pending;
}

/// True if the condition has changed.
bool put_message(Step& step, const std::string& suffix) {
  const auto condition = condition_of(step.phase());
  const auto reason = condition_reason(step.migration, condition);
  if (!is_waiting(reason)) return false;
  const auto before = condition_message(step.migration, condition);
  const auto wanted = base_of(step, before) + suffix;
  step.set_wait_suffix(suffix);
  if (wanted == before) return false;
  step.report(kube::ConditionStatus::no, reason, wanted);
  return condition_message(step.migration, condition) != before;
}

std::array<std::string, 2> hubs_of(const Step& step) {
  return {step.migration.from(), step.migration.to()};
}

/// What the step itself says, and what is wrong with the hubs.
std::string describe_troubles(const Step& step) {
  std::string text;
  for (const auto& what : step.waits()) add(text, what);
  for (const auto& hub : hubs_of(step)) add(text, step->hubs.troubles.find(hub));
  return text;
}

std::string suffix_of(const Step& step) {
  std::string suffix;
  if (!step.progress().empty()) suffix += progress_mark + step.progress();
  if (const auto waits = describe_waits(step); !waits.empty()) suffix += waits_mark + waits;
  return suffix;
}

}  // namespace

std::string describe_waits(const Step& step) {
  auto text = describe_troubles(step);
  const std::string migration{step.migration.object.uid()};
  std::set<std::string> named;
  const auto add_clusters = [&](const hubagent::Waits& waits) {
    const auto found = waits.of(migration, named);
    for (const auto& [what, clusters] : found) {
      if (clusters.front().empty()) {
        add(text, what);
        continue;
      }
      add(text, count_clusters(clusters.size()) + " whose " + what + ": " + some_names(clusters, 3));
      named.insert(clusters.begin(), clusters.end());
    }
  };
  add_clusters(step.cluster_waits());
  // The source first: a cluster that it still has is not late on the target.
  for (const auto& hub : hubs_of(step)) {
    const auto connection = step->hubs.connection(hub);
    if (connection && (*connection)->waits != nullptr) add_clusters(*(*connection)->waits);
  }
  return text;
}

Awaitable<> report_waits(Step& step) {
  if (step.phase() == phases::pending) co_return;
  std::string troubles;
  bool waited = false;
  // Counts change all the time; a wait that begins or ends, and another trouble, do not wait for their turn.
  auto next_progress = async::later(step.clock().now(), step->options.progress_interval);
  for (;;) {
    co_await step.clock().sleep_for(look_interval);
    const bool waits = !describe_waits(step).empty();
    const bool is_due = step.clock().now() >= next_progress;
    const bool is_news = std::exchange(waited, waits) != waits;
    auto now_wrong = describe_troubles(step);
    const bool is_trouble = std::exchange(troubles, now_wrong) != now_wrong;
    if (!is_due && !is_news && !is_trouble) continue;
    if (is_due) next_progress = async::later(step.clock().now(), step->options.progress_interval);
    if (put_wait_report(step)) co_await step.save();
  }
}

bool put_wait_report(Step& step) {
  return put_message(step, suffix_of(step));
}

void end_wait_report(Step& step) {
  if (step.phase() != phases::pending) put_message(step, {});
}

}  // namespace hubferry::migration
