#include "hubferry/kube/string_pool.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>

namespace hubferry::kube {

namespace {

struct Pool {
  Pool() { intern({}); }

  std::mutex mutex;
  std::unordered_map<std::string, std::uint32_t> numbers;  // its nodes hold the strings
  // Published with release: a thread that got a number from another can read its string without the mutex.
  std::array<std::atomic<const std::string*>, StringPool::most_strings> strings{};

  std::optional<std::uint32_t> intern(std::string_view text) {
    const std::scoped_lock lock{mutex};
    if (const auto known = numbers.find(std::string{text}); known != numbers.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(numbers.size());
    if (number == StringPool::most_strings) return std::nullopt;
    const auto added = numbers.emplace(text, number).first;
    strings[number].store(&added->first, std::memory_order_release);
    return number;
  }
};

Pool& pool() {
  // Never destroyed: cached objects may outlive main().
  static auto* const only = new Pool;
  return *only;
}

}  // namespace

std::optional<std::uint32_t> StringPool::intern(std::string_view text) {
  if (text.size() > longest) return std::nullopt;
  thread_local std::unordered_map<std::string_view, std::uint32_t> known_here;
  if (const auto known = known_here.find(text); known != known_here.end()) return known->second;
  const auto number = pool().intern(text);
  if (number) known_here.emplace(StringPool::text(*number), *number);
  return number;
}

std::string_view StringPool::text(std::uint32_t number) {
  return *pool().strings[number].load(std::memory_order_acquire);
}

}  // namespace hubferry::kube
