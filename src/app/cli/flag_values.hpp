#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::app {

// How texts of flags and environment variables become values. All throw std::invalid_argument with a sentence that
// names the text and says what would be right.

bool parse_switch(std::string_view text);
std::int64_t parse_integer(std::string_view text, std::int64_t least, std::int64_t most);
double parse_number(std::string_view text);
async::Duration parse_positive_duration(std::string_view text);
/// "a,b": no empty items, none twice.
std::vector<std::string> parse_list(std::string_view text);
/// One of `choices`.
std::string parse_choice(std::string_view text, const std::vector<std::string>& choices);
/// A name as Kubernetes wants it for namespaces.
std::string parse_namespace(std::string_view text);
/// A name as Kubernetes wants it for most other objects: such names with dots between them.
std::string parse_object_name(std::string_view text);

/// "a, b or c".
std::string join_choices(const std::vector<std::string>& choices);

/// The candidate that `word` was most likely meant to be, if one comes close.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace hubferry::app
