#include "hubferry/async/random.hpp"

#include <bit>
#include <random>
#include <string_view>

namespace hubferry::async {

namespace {

// splitmix64: spreads one seed over the whole state, as the authors of xoshiro advise.
std::uint64_t spread(std::uint64_t& seed) {
  std::uint64_t mixed = (seed += 0x9e3779b97f4a7c15);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed) {
  for (auto& word : state_) word = spread(seed);
}

Random Random::from_entropy() {
  std::random_device device;
  return Random{(std::uint64_t{device()} << 32) | device()};
}

// xoshiro256**: small, fast, and the same on every platform, which std's distributions are not.
std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  // Multiply-shift: the bias is below bound / 2^64.
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
}

double Random::fraction() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

Duration Random::between(Duration low, Duration high) {
  if (high <= low) return low;
  return low + Duration{static_cast<Duration::rep>(below(static_cast<std::uint64_t>((high - low).count()) + 1))};
}

std::string Random::suffix(std::size_t length) {
  // No vowels, no digits that look like letters: no words, no mix-ups.
  static constexpr std::string_view alphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string text(length, ' ');
  for (auto& c : text) c = alphabet[below(alphabet.size())];
  return text;
}

std::string Random::uuid() {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
  for (auto& c : text) {
    if (c == 'x') c = digits[below(16)];
    if (c == 'y') c = digits[8 + below(4)];
  }
  return text;
}

}  // namespace hubferry::async
