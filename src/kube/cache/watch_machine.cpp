#include "hubferry/kube/watch_machine.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hubferry::kube {

namespace {

using enum WatchState;
using enum WatchInput;

constexpr WatchMachine::Transition table[] = {
    {idle, start, listing},
    {idle, start, streaming},

    {listing, page, listing},
    {listing, last_page, opening},
    {listing, gone, listing},     // between pages: all in one piece; at a version: the newest
    {listing, gone, list_pause},  // not even the newest could be had
    {listing, refused, list_pause},
    {listing, failed, list_pause},
    {listing, garbled, list_pause},
    {list_pause, pause_over, listing},
    {list_pause, pause_over, streaming},

    {streaming, opened, filling},
    {streaming, refused, listing},
    {streaming, gone, listing},
    {streaming, failed, list_pause},
    {streaming, garbled, list_pause},
    {filling, events, filling},
    {filling, events, listing},  // a plain bookmark before the end: sendInitialEvents was ignored
    {filling, filled, reading},
    {filling, closed, listing},
    {filling, refused, listing},
    {filling, gone, listing},
    {filling, failed, list_pause},
    {filling, garbled, list_pause},

    {opening, opened, reading},
    {opening, gone, listing},
    {opening, gone, streaming},
    {opening, gone, list_pause},  // again, soon after the last time
    {opening, refused, watch_pause},
    {opening, failed, watch_pause},
    {opening, garbled, watch_pause},
    {watch_pause, pause_over, opening},

    {reading, events, reading},
    {reading, closed, opening},
    {reading, closed, watch_pause},  // too soon
    {reading, gone, listing},
    {reading, gone, streaming},
    {reading, gone, list_pause},
    {reading, failed, watch_pause},
    {reading, refused, watch_pause},
    {reading, garbled, list_pause},
};
static_assert(std::size(table) <= WatchMachine::most_transitions);

bool names_unknown_version(const Error& error) {
  // A server that lags behind answers 504 with this message; asking for the newest version gets past it.
  return error.kind == ErrorKind::retry_later && error.message.find("Too large resource version") != std::string::npos;
}

}  // namespace

std::span<const WatchMachine::Transition> WatchMachine::transitions() {
  return table;
}

std::string_view to_string(WatchState state) {
  constexpr std::string_view names[] = {"idle",    "listing", "list_pause", "streaming",
                                        "filling", "opening", "reading",    "watch_pause"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view to_string(WatchInput input) {
  constexpr std::string_view names[] = {"start",  "page", "last_page", "opened", "events",  "filled",
                                        "closed", "gone", "refused",   "failed", "garbled", "pause_over"};
  return names[static_cast<std::size_t>(input)];
}

WatchInput cause_of(const Error& error) {
  if (error.kind == ErrorKind::gone || names_unknown_version(error)) return gone;
  if (error.kind == ErrorKind::invalid || error.kind == ErrorKind::unsupported) return refused;
  if (error.kind == ErrorKind::bad_response) return garbled;
  return failed;
}

WatchMachine::WatchMachine(WatchPolicy policy, std::string resource_version)
    : policy_(policy), resource_version_(std::move(resource_version)), stream_initial_(policy.stream_initial) {}

WatchStep WatchMachine::resume(WatchInput input, Facts facts, async::TimePoint now, async::Random& random) {
  switch (state_) {
    case idle:
    case list_pause:
      move_to(stream_initial_ ? streaming : listing, input);
      break;
    case watch_pause:
      move_to(opening, input);
      return open({}, now, random);
    case listing:
      return on_listing(input, facts, now, random);
    case streaming:
    case filling:
      return on_filling(input, facts, now, random);
    case opening:
    case reading:
      return on_watching(input, facts, now, random);
  }
  return state_ == streaming ? open({}, now, random) : fetch({});
}

WatchStep WatchMachine::on_listing(WatchInput input, Facts& facts, async::TimePoint now, async::Random& random) {
  switch (input) {
    case page:
      move_to(listing, input);
      return list_page(std::move(facts.continue_token));
    case last_page: {
      move_to(opening, input);
      resource_version_ = std::move(facts.resource_version);
      newest_ = unpaged_ = false;
      WatchStep step = open({}, now, random);
      step.complete = true;
      return step;
    }
    case gone:
      // The newest is all that can be asked for: if its first page is gone already, the server is not well.
      if (newest_ && !continued_) {
        move_to(list_pause, input);
        return pause("gone", facts, now, random);
      }
      unpaged_ = continued_;
      newest_ = true;
      move_to(listing, input);
      return fetch("gone");
    case garbled:
      // Perhaps larger than allowed: for a version of its own choice, or in one piece, a server ignores the page size.
      newest_ = true;
      unpaged_ = false;
      [[fallthrough]];
    default:
      move_to(list_pause, input);
      return pause(to_string(input), facts, now, random);
  }
}

WatchStep WatchMachine::on_filling(WatchInput input, Facts& facts, async::TimePoint now, async::Random& random) {
  switch (input) {
    case opened:
      move_to(filling, input);
      return read();
    case filled: {
      move_to(reading, input);
      resource_version_ = std::move(facts.resource_version);
      newest_ = false;
      WatchStep step = read();
      step.complete = true;
      return step;
    }
    case events:
      if (!facts.bookmarks_only) {
        move_to(filling, input);
        return read();
      }
      [[fallthrough]];
    case closed:
    case refused:
      stream_initial_ = false;
      move_to(listing, input);
      return fetch("no_stream");
    case gone:
      newest_ = true;
      stream_initial_ = false;
      move_to(listing, input);
      return fetch("gone");
    default:
      move_to(list_pause, input);
      return pause(to_string(input), facts, now, random);
  }
}

WatchStep WatchMachine::on_watching(WatchInput input, Facts& facts, async::TimePoint now, async::Random& random) {
  switch (input) {
    case opened:
      move_to(reading, input);
      opened_at_ = now;
      return read();
    case events:
      move_to(reading, input);
      if (!facts.resource_version.empty()) resource_version_ = std::move(facts.resource_version);
      return read();
    case closed:
      if (now - opened_at_ < policy_.too_short) {
        move_to(watch_pause, input);
        return pause("too_short", facts, now, random);
      }
      move_to(opening, input);
      return open("closed", now, random);
    case gone: {
      newest_ = true;
      // A fresh list helps once. A server that keeps doing so must not be listed in a busy loop.
      const bool again = last_gone_ && now - *last_gone_ < policy_.backoff.reset_after;
      last_gone_ = now;
      if (again) {
        move_to(list_pause, input);
        return pause("gone", facts, now, random);
      }
      move_to(stream_initial_ ? streaming : listing, input);
      if (state_ == listing) return fetch("gone");
      return open("gone", now, random);
    }
    case garbled:
      // A watch from the same version would bring the same line again; a list may get past it.
      move_to(state_ == reading ? list_pause : watch_pause, input);
      return pause("garbled", facts, now, random);
    default:
      move_to(watch_pause, input);
      return pause(to_string(input), facts, now, random);
  }
}

void WatchMachine::move_to(WatchState to, WatchInput input) {
  const auto* row = std::ranges::find_if(
      table, [&](const Transition& t) { return t.from == state_ && t.input == input && t.to == to; });
  if (row == std::end(table))
    throw std::logic_error("watch machine: '" + std::string{to_string(input)} + "' cannot happen while " +
                           std::string{to_string(state_)});
  taken_.set(static_cast<std::size_t>(row - std::begin(table)));
  state_ = to;
}

WatchStep WatchMachine::fetch(std::string_view restart) {
  WatchStep step = list_page({});
  step.begin = true;
  step.drop_stream = true;
  step.restart = restart;
  return step;
}

WatchStep WatchMachine::list_page(std::string continue_token) {
  ListNext list;
  // Any state will do for a start; later it must not be older than what was seen, or the newest there is. Later
  // pages belong to the first one's version.
  if (continue_token.empty() && !newest_) list.resource_version = resource_version_.empty() ? "0" : resource_version_;
  continued_ = !continue_token.empty();
  list.continue_token = std::move(continue_token);
  list.limit = unpaged_ ? 0 : policy_.page_size;
  return {.action = std::move(list), .restart = {}};
}

WatchStep WatchMachine::open(std::string_view restart, async::TimePoint now, async::Random& random) {
  OpenWatch watch;
  watch.timeout = watch_timeout(random);
  watch.send_initial_events = state_ == streaming;
  if (state_ == opening || !newest_) watch.resource_version = resource_version_;
  opened_at_ = now;
  return {.action = std::move(watch), .begin = state_ == streaming, .drop_stream = true, .restart = restart};
}

WatchStep WatchMachine::read() const {
  ReadWatch read;
  if (state_ == filling) read.silence = policy_.silence_while_filling;
  return {.action = read, .restart = {}};
}

WatchStep WatchMachine::pause(std::string_view restart, const Facts& facts, async::TimePoint now,
                              async::Random& random) {
  const auto& backoff = policy_.backoff;
  if (failures_ > 0 && now - last_failure_ >= backoff.reset_after) failures_ = 0;
  last_failure_ = now;
  const double grown = static_cast<double>(backoff.first.count()) * std::pow(backoff.factor, failures_);
  const double capped = std::min(grown, static_cast<double>(backoff.most.count()));
  ++failures_;
  const double jittered = capped * (1 + backoff.jitter * random.fraction());
  Pause pause;
  pause.delay = async::Duration{static_cast<async::Duration::rep>(jittered)};
  if (facts.retry_after) pause.delay = std::max(pause.delay, *facts.retry_after);
  return {.action = pause, .drop_stream = true, .restart = restart};
}

async::Duration WatchMachine::watch_timeout(async::Random& random) const {
  const auto span = static_cast<double>((policy_.longest_watch - policy_.shortest_watch).count());
  return policy_.shortest_watch + async::Duration{static_cast<async::Duration::rep>(span * random.fraction())};
}

}  // namespace hubferry::kube
