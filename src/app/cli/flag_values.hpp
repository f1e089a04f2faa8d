#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

// Parsers for the values of flags and environment variables. All throw std::invalid_argument with a message that quotes
// the text and says what is allowed.

bool parse_switch(std::string_view text);
std::int64_t parse_integer(std::string_view text, std::int64_t least, std::int64_t most);
double parse_number(std::string_view text);
async::Duration parse_positive_duration(std::string_view text);
/// "a,b": no empty and no duplicate items.
std::vector<std::string> parse_list(std::string_view text);
/// One of `choices`.
std::string parse_choice(std::string_view text, const std::vector<std::string>& choices);
/// A namespace (RFC 1123 label).
std::string parse_namespace(std::string_view text);
/// An object's name (RFC 1123 subdomain).
std::string parse_object_name(std::string_view text);

/// "a, b or c".
std::string join_choices(const std::vector<std::string>& choices);

/// The candidate with the smallest edit distance to `word`, if it is close enough for "did you mean".
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace hubferry::app
