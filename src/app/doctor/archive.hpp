#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace hubferry::app {

/// Writes a tar archive (ustar) with gzip compression, readable by this user only. `files`: content by path, of at most
/// 100 bytes. `modified`: of all files, in seconds since 1970. Throws std::runtime_error.
void write_archive(const std::filesystem::path& archive, const std::map<std::string, std::string>& files,
                   std::int64_t modified);

}  // namespace hubferry::app
