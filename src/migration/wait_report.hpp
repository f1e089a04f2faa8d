#pragma once

#include "migration/step.hpp"

namespace hubferry::migration {

/// What a step waits for now: what it says itself, what is wrong with its hubs, and what operations on them wait for,
/// cluster by cluster. Empty: nothing.
std::string describe_waits(const Step& step);

/// Keeps the condition of the step's phase up to date until cancelled: what is waited for, and how far the step is,
/// stand behind the message that the phase began with, within two seconds, and no longer than they are true. Pending
/// has messages of its own.
Awaitable<> report_waits(Step& step);
/// The same now, for a status that is about to be written anyway. True if it has changed the condition.
bool put_wait_report(Step& step);
/// Takes that out of the condition again; to be written with the step's result.
void end_wait_report(Step& step);

}  // namespace hubferry::migration
