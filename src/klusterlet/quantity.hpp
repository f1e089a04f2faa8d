#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hubferry::klusterlet {

/// A resource quantity of Kubernetes ("1500m", "16Gi", "1e3"): exact to a billionth, and wide enough for the sum over
/// any cluster.
class Quantity {
 public:
  Quantity() = default;

  /// nullopt: not a quantity, or beyond what any node can have.
  static std::optional<Quantity> parse(std::string_view text);

  /// A sum starts with the default: it takes over the notation of the first quantity that is not zero.
  void add(const Quantity& other);
  /// As Kubernetes writes it: the largest suffix that leaves a whole number.
  [[nodiscard]] std::string text() const;

 private:
  __extension__ using Billionths = __int128;

  Billionths value_ = 0;
  bool binary_ = false;  // written with Ki, Mi, … instead of k, M, …
};

}  // namespace hubferry::klusterlet
