#pragma once

#include <string_view>

namespace hubferry::obs {

/// What this binary was built from: for `hubferry version`, the build metric and the User-Agent.
struct BuildInfo {
  std::string_view version;   // "0.1.0"
  std::string_view revision;  // of the source, with "-dirty" for uncommitted changes; "unknown" outside of git
  std::string_view compiler;
  std::string_view platform;  // "linux/amd64"
};

const BuildInfo& build_info();

}  // namespace hubferry::obs
