#pragma once

#include <optional>

#include "hubferry/async/types.hpp"

namespace hubferry::phase {

/// An optional WallTime of the size of a WallTime: the earliest one means "none". Every handler of every waiting
/// machine has two or four of them.
class OptionalTime {
 public:
  constexpr OptionalTime() = default;
  constexpr OptionalTime(std::nullopt_t) {}                           // NOLINT(google-explicit-constructor)
  constexpr OptionalTime(async::WallTime time) : time_(time) {}       // NOLINT(google-explicit-constructor)
  constexpr OptionalTime(const std::optional<async::WallTime>& time)  // NOLINT(google-explicit-constructor)
      : time_(time.value_or(none)) {}

  [[nodiscard]] constexpr bool has_value() const { return time_ != none; }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr const async::WallTime& operator*() const { return time_; }
  [[nodiscard]] constexpr async::WallTime value_or(async::WallTime otherwise) const {
    return has_value() ? time_ : otherwise;
  }
  constexpr operator std::optional<async::WallTime>() const {  // NOLINT(google-explicit-constructor)
    return has_value() ? std::optional{time_} : std::nullopt;
  }
  constexpr void reset() { time_ = none; }

  bool operator==(const OptionalTime&) const = default;

 private:
  static constexpr async::WallTime none = async::WallTime::min();

  async::WallTime time_ = none;
};

}  // namespace hubferry::phase
