#pragma once

#include <cstdint>
#include <string>

#include "hubferry/async/types.hpp"

namespace hubferry::async {

/// The source of all randomness: jitter, generated names, fault injection. One seed gives one sequence, everywhere.
/// Not for secrets. Not thread-safe: give every loop its own with fork().
class Random {
 public:
  explicit Random(std::uint64_t seed);
  /// Seeded by the operating system.
  static Random from_entropy();

  std::uint64_t next();
  /// Uniform in [0, bound); 0 for bound 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1).
  double fraction();
  bool chance(double probability) { return fraction() < probability; }
  /// Uniform in [low, high].
  Duration between(Duration low, Duration high);
  /// `length` characters as Kubernetes appends to a generateName.
  std::string suffix(std::size_t length = 5);
  /// A random (version 4) UUID.
  std::string uuid();
  /// An independent generator that depends only on this one's state.
  Random fork() { return Random{next()}; }

 private:
  std::uint64_t state_[4];
};

}  // namespace hubferry::async
