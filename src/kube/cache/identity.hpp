#pragma once

#include <optional>
#include <string_view>

#include "hubferry/kube/decoder.hpp"

namespace hubferry::kube {

/// Which object it is, of one that cannot be decoded: key and version, without the object. nullopt where it has no
/// name.
std::optional<Decoded> identify(std::string_view bytes);

}  // namespace hubferry::kube
