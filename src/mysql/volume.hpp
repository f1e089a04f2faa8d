#pragma once

#include <algorithm>

namespace hubferry::mysql {

/// The volume that has a server's data, in bytes.
struct Volume {
  double size = 0;
  double free = 0;
};

/// True: hardly anything is left. One that `was` so needs twice as much, so that it does not change all the time.
inline bool is_nearly_full(const Volume& volume, bool was) {
  constexpr double part = 0.05;
  constexpr double most = 5.0 * 1024 * 1024 * 1024;
  const double limit = std::min(volume.size * part, most);
  return volume.free < (was ? 2 * limit : limit);
}

}  // namespace hubferry::mysql
