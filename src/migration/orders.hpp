#pragma once

#include "migration/step.hpp"

/// Orders to the two hubs of a migration, given until they are answered (see ask()).
namespace hubferry::migration {

using hubagent::Outcome;

/// `order(hub)` is called with the hub's SourceHub or TargetHub, for each attempt.
template <typename Order>
auto ask_source(Step& step, Order order) -> std::invoke_result_t<Order&, hubagent::SourceHub&> {
  auto attempt = [&step, &order]() -> std::invoke_result_t<Order&, hubagent::SourceHub&> {
    auto found = step.source();
    if (!found) co_return found.error();
    const auto& source = *found;
    co_return co_await order(*source);
  };
  co_return co_await ask(step, attempt);
}

template <typename Order>
auto ask_target(Step& step, Order order) -> std::invoke_result_t<Order&, hubagent::TargetHub&> {
  auto attempt = [&step, &order]() -> std::invoke_result_t<Order&, hubagent::TargetHub&> {
    auto found = step.target();
    if (!found) co_return found.error();
    const auto& target = *found;
    co_return co_await order(*target);
  };
  co_return co_await ask(step, attempt);
}

/// An Outcome's failures, as of this step's phase.
inline std::map<std::string, Failure> failures_of(const Step& step, const Outcome& outcome) {
  std::map<std::string, Failure> failures;
  for (const auto& failed : outcome.failed)
    failures.insert_or_assign(failed.cluster, Failure{step.phase(), failed.reason, failed.message});
  return failures;
}

/// "hub 'hub1' could not be asked: …"
inline std::string could_not_ask(std::string_view hub, const kube::Error& error) {
  return std::string{hub} + " could not be asked: " + sentence_of(error);
}

}  // namespace hubferry::migration
