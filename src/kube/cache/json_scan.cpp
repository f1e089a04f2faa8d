#include "kube/cache/json_cursor.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace hubferry::kube::detail {

namespace {

constexpr std::size_t block_size = 64;

/// One bit per byte of a block.
struct Block {
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t opening = 0;  // { [
  std::uint64_t closing = 0;  // } ]
};

// Brackets and braces differ in this one bit only.
constexpr char brace_bit = 0x20;
static_assert(('[' | brace_bit) == '{' && (']' | brace_bit) == '}');

#ifdef __SSE2__

Block classify(const char* bytes) {
  Block block;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i folded_bit = _mm_set1_epi8(brace_bit);
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  for (unsigned lane = 0; lane < block_size; lane += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + lane));
    const __m128i folded = _mm_or_si128(part, folded_bit);
    const auto bits = [lane](__m128i equal) {
      return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(equal))) << lane;
    };
    block.quotes |= bits(_mm_cmpeq_epi8(part, quote));
    block.backslashes |= bits(_mm_cmpeq_epi8(part, backslash));
    block.opening |= bits(_mm_cmpeq_epi8(folded, open));
    block.closing |= bits(_mm_cmpeq_epi8(folded, close));
  }
  return block;
}

#else

Block classify(const char* bytes) {
  Block block;
  for (std::size_t i = 0; i < block_size; ++i) {
    const char folded = static_cast<char>(bytes[i] | brace_bit);
    block.quotes |= std::uint64_t{bytes[i] == '"'} << i;
    block.backslashes |= std::uint64_t{bytes[i] == '\\'} << i;
    block.opening |= std::uint64_t{folded == '{'} << i;
    block.closing |= std::uint64_t{folded == '}'} << i;
  }
  return block;
}

#endif

/// Bit i of the result: the parity of bits 0 to i. Between an odd and an even quote lies a string.
std::uint64_t running_parity(std::uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

/// Follows strings and depth from block to block.
class Scan {
 public:
  /// The position in the block, one past the bracket that brings the depth to zero; 0 when that is not in here.
  unsigned advance(const Block& block) {
    const std::uint64_t quotes = block.quotes & ~escaped(block.backslashes);
    const std::uint64_t in_string = running_parity(quotes) ^ string_carry_;
    string_carry_ = (in_string >> 63) != 0 ? ~std::uint64_t{0} : 0;
    const std::uint64_t opening = block.opening & ~in_string;
    std::uint64_t closing = block.closing & ~in_string;

    if (static_cast<std::size_t>(std::popcount(closing)) >= depth_) {
      for (std::size_t closed = 1; closing != 0; ++closed, closing &= closing - 1) {
        const auto at = static_cast<unsigned>(std::countr_zero(closing));
        const std::uint64_t before = (std::uint64_t{1} << at) - 1;
        if (depth_ + static_cast<std::size_t>(std::popcount(opening & before)) == closed) return at + 1;
      }
      closing = block.closing & ~in_string;
    }
    depth_ += static_cast<std::size_t>(std::popcount(opening));
    depth_ -= static_cast<std::size_t>(std::popcount(closing));
    return 0;
  }

 private:
  std::uint64_t escaped(std::uint64_t backslashes) {
    std::uint64_t result = escape_carry_;
    backslashes &= ~escape_carry_;
    escape_carry_ = 0;
    while (backslashes != 0) {
      const auto at = static_cast<unsigned>(std::countr_zero(backslashes));
      if (at == 63) {
        escape_carry_ = 1;
        break;
      }
      const std::uint64_t next = std::uint64_t{2} << at;
      result |= next;
      backslashes &= ~((std::uint64_t{1} << at) | next);
    }
    return result;
  }

  std::size_t depth_ = 0;
  std::uint64_t string_carry_ = 0;  // all ones: the block begins inside a string
  std::uint64_t escape_carry_ = 0;  // 1: the block's first byte is escaped
};

}  // namespace

std::size_t end_of_container(std::string_view text, std::size_t begin) {
  Scan scan;
  std::size_t at = begin;
  for (; text.size() - at >= block_size; at += block_size)
    if (const unsigned found = scan.advance(classify(text.data() + at)); found != 0) return at + found;
  if (at < text.size()) {
    char rest[block_size];
    std::memset(rest, ' ', block_size);
    std::memcpy(rest, text.data() + at, text.size() - at);
    if (const unsigned found = scan.advance(classify(rest)); found != 0) return at + found;
  }
  return std::string_view::npos;
}

std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t quote = text.find('"', begin + 1); quote != std::string_view::npos;
       quote = text.find('"', quote + 1)) {
    std::size_t first = quote;
    while (first > begin + 1 && text[first - 1] == '\\') --first;
    // An even number of backslashes escape each other.
    if ((quote - first) % 2 == 0) return quote;
  }
  return std::string_view::npos;
}

}  // namespace hubferry::kube::detail
