#pragma once

#include <string_view>
#include <vector>

namespace hubferry::sim {

/// A file embedded in the binary.
struct EmbeddedFile {
  std::string_view name;
  std::string_view content;
};

/// The YAML files of src/sim/crds and manifests/crds.
const std::vector<EmbeddedFile>& embedded_crds();

}  // namespace hubferry::sim
