#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hubferry::obs {

/// Where a server listens.
struct BindAddress {
  std::string host;  // empty: all interfaces
  std::uint16_t port = 0;

  bool operator==(const BindAddress&) const = default;
};

/// Reads an address as Go's users type it: ":8080", "127.0.0.1:0", "[::1]:8080", "localhost:8080".
/// nullopt for "" and "0": switched off. Throws std::invalid_argument with a message that quotes the text.
std::optional<BindAddress> parse_bind_address(std::string_view text);

}  // namespace hubferry::obs
