#include "credentials.hpp"

#include <cstring>

namespace hubferry::worlds {

namespace {

constexpr std::size_t part_size = sizeof(std::uint64_t);

std::uint64_t part_at(std::string_view text, std::size_t at) {
  std::uint64_t part = 0;
  std::memcpy(&part, text.data() + at, part_size);
  return part;
}

/// Where the part of a credential begins by which it is found.
std::size_t middle_of(std::string_view text) {
  return (text.size() - part_size) / 2;
}

std::size_t hash_of(std::uint64_t part) {
  return static_cast<std::size_t>((part * 0x9E3779B97F4A7C15U) >> 48);
}

}  // namespace

void Credentials::add(std::string text) {
  if (text.size() < part_size) return;
  const auto [added, is_new] = all_.insert(std::move(text));
  if (!is_new) return;
  const auto part = part_at(*added, middle_of(*added));
  by_part_.emplace(part, &*added);
  parts_.set(hash_of(part));
}

bool Credentials::occur_in(std::string_view text) const {
  for (std::size_t at = 0; at + part_size <= text.size(); ++at) {
    const auto part = part_at(text, at);
    if (!parts_.test(hash_of(part))) continue;
    const auto [first, last] = by_part_.equal_range(part);
    for (auto found = first; found != last; ++found) {
      const auto& credential = *found->second;
      const auto before = middle_of(credential);
      if (at >= before && text.substr(at - before).starts_with(credential)) return true;
    }
  }
  return false;
}

}  // namespace hubferry::worlds
