#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace hubferry::kube {

/// More than any kubeconfig, certificate bundle or token ever holds: a wrong path must not fill the memory.
inline constexpr std::size_t most_file_bytes = std::size_t{8} << 20;

/// The whole file. Throws std::system_error whose code says why it cannot be read; file_too_large beyond `limit`.
std::string read_file(const std::filesystem::path& file, std::size_t limit = most_file_bytes);

/// Without surrounding white space: files of tokens and names often end in a newline, which no header may contain.
std::string trimmed(std::string text);

}  // namespace hubferry::kube
