#include "klusterlet/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace hubferry::klusterlet {

namespace {

__extension__ using Wide = __int128;

constexpr Wide one = 1'000'000'000;
// 1 Ei has 19 digits. Longer numbers are no quantities of a node, and must not overflow.
constexpr std::size_t most_digits = 19;
constexpr Wide largest = Wide{1} << 110;

struct Suffix {
  std::string_view text;
  Wide factor;  // in billionths
  bool binary;
};

constexpr Wide power(Wide base, int exponent) {
  Wide value = 1;
  for (int i = 0; i < exponent; ++i) value *= base;
  return value;
}

// In ascending order.
constexpr std::array<Suffix, 10> decimal_suffixes{{{"n", 1, false},
                                                   {"u", power(1000, 1), false},
                                                   {"m", power(1000, 2), false},
                                                   {"", one, false},
                                                   {"k", one* power(1000, 1), false},
                                                   {"M", one* power(1000, 2), false},
                                                   {"G", one* power(1000, 3), false},
                                                   {"T", one* power(1000, 4), false},
                                                   {"P", one* power(1000, 5), false},
                                                   {"E", one* power(1000, 6), false}}};
constexpr std::array<Suffix, 6> binary_suffixes{{{"Ki", one* power(1024, 1), true},
                                                 {"Mi", one* power(1024, 2), true},
                                                 {"Gi", one* power(1024, 3), true},
                                                 {"Ti", one* power(1024, 4), true},
                                                 {"Pi", one* power(1024, 5), true},
                                                 {"Ei", one* power(1024, 6), true}}};

std::optional<Suffix> suffix_of(std::string_view text) {
  for (const auto& suffix : decimal_suffixes)
    if (suffix.text == text) return suffix;
  for (const auto& suffix : binary_suffixes)
    if (suffix.text == text) return suffix;
  // "e3", "E-3"
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  int exponent = 0;
  const auto* first = text.data() + (text[1] == '+' ? 2 : 1);
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(first, end, exponent);
  if (error != std::errc{} || stop != end || exponent < -9 || exponent > 18) return std::nullopt;
  return Suffix{text, power(10, exponent + 9), false};
}

std::string digits_of(Wide value) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return text;
}

/// The largest of these suffixes that leaves a whole number; null: none does.
template <typename Suffixes>
const Suffix* largest_exact(const Suffixes& suffixes, Wide value) {
  for (auto at = suffixes.rbegin(); at != suffixes.rend(); ++at)
    if (value % at->factor == 0) return &*at;
  return nullptr;
}

}  // namespace

std::optional<Quantity> Quantity::parse(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  Wide digits = 0;
  std::size_t count = 0;
  Wide below_point = 1;  // ten for each digit behind the point
  bool point = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    if (++count > most_digits) return std::nullopt;
    digits = digits * 10 + (text[at] - '0');
    if (point) below_point *= 10;
  }
  if (count == 0) return std::nullopt;
  const auto suffix = suffix_of(text.substr(at));
  if (!suffix || digits > largest / suffix->factor) return std::nullopt;
  Quantity quantity;
  // Rounded up, as Kubernetes does.
  quantity.value_ = (digits * suffix->factor + below_point - 1) / below_point;
  quantity.binary_ = suffix->binary;
  return quantity;
}

void Quantity::add(const Quantity& other) {
  if (value_ == 0) binary_ = other.binary_;
  value_ = std::min(value_ + other.value_, largest);
}

std::string Quantity::text() const {
  if (value_ == 0) return "0";
  if (binary_ && value_ >= 1024 * one) {
    const Wide whole = (value_ + one - 1) / one * one;
    const auto* suffix = largest_exact(binary_suffixes, whole);
    return suffix == nullptr ? digits_of(whole / one) : digits_of(whole / suffix->factor) + std::string{suffix->text};
  }
  const auto* suffix = largest_exact(decimal_suffixes, value_);
  return digits_of(value_ / suffix->factor) + std::string{suffix->text};
}

}  // namespace hubferry::klusterlet
