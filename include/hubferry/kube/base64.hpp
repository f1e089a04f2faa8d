#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hubferry::kube {

/// The standard alphabet, padded.
std::string encode_base64(std::string_view bytes);

/// Strict, except that white space is skipped: people wrap long values. nullopt for anything else.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace hubferry::kube
