#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "hubferry/obs/secret.hpp"

namespace hubferry::obs {

/// What a log field shows. Made where it is logged: text that is not a temporary is referred to, not copied.
class Value {
 public:
  /// Stands for a Secret; the text itself never gets here.
  struct Redacted {};
  using Any = std::variant<std::string_view, std::string, std::int64_t, std::uint64_t, double, bool,
                           std::chrono::nanoseconds, std::exception_ptr, Redacted>;

  Value(std::string_view text) : any_(text) {}
  Value(const char* text) : any_(text != nullptr ? std::string_view(text) : std::string_view()) {}
  Value(const std::string& text) : any_(std::string_view(text)) {}
  Value(std::string&& text) : any_(std::move(text)) {}
  template <std::same_as<bool> T>
  Value(T value) : any_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T value) : any_(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value)) {}
  template <std::floating_point T>
  Value(T value) : any_(static_cast<double>(value)) {}
  /// Shown in Go's notation: "1m30s".
  template <typename Rep, typename Period>
  Value(std::chrono::duration<Rep, Period> duration)
      : any_(std::chrono::duration_cast<std::chrono::nanoseconds>(duration)) {}
  /// Shown as the exception's message.
  Value(std::exception_ptr error) : any_(std::move(error)) {}
  Value(const Secret&) : any_(Redacted{}) {}

  [[nodiscard]] const Any& any() const { return any_; }

 private:
  Any any_;
};

/// One key with its value: `{"migration", name}`.
struct Field {
  std::string_view key;
  Value value;
};

}  // namespace hubferry::obs
