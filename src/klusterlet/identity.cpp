#include "hubferry/klusterlet/identity.hpp"

#include <algorithm>

namespace hubferry::klusterlet {

namespace {

constexpr const char* prefix = "system:open-cluster-management:";

}  // namespace

std::string Identity::common_name() const {
  return prefix + cluster + ":" + agent;
}

std::vector<std::string> Identity::organizations() const {
  return {prefix + cluster, std::string{prefix} + "managed-clusters"};
}

bool is_namespace_name(std::string_view text) {
  const auto is_edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && is_edge(text.front()) && is_edge(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_edge(c) || c == '-'; });
}

}  // namespace hubferry::klusterlet
