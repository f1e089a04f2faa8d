#include "hubferry/obs/build_info.hpp"

#include "revision.hpp"

namespace hubferry::obs {

namespace {

#if defined(__x86_64__)
constexpr std::string_view platform = "linux/amd64";
#elif defined(__aarch64__)
constexpr std::string_view platform = "linux/arm64";
#else
constexpr std::string_view platform = "linux/unknown";
#endif

constexpr BuildInfo info{
    .version = HUBFERRY_VERSION, .revision = HUBFERRY_REVISION, .compiler = __VERSION__, .platform = platform};

}  // namespace

const BuildInfo& build_info() {
  return info;
}

}  // namespace hubferry::obs
