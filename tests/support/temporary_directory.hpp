#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace hubferry::test {

/// A directory for one test, deleted with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    auto pattern = (std::filesystem::temp_directory_path() / "hubferry-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The path of a file in it, for command lines.
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

  /// Writes a file, creates its parent directories, and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file, std::ios::binary | std::ios::trunc} << content;
    return file;
  }

  std::filesystem::path write_script(const std::string& name, const std::string& body) const {
    const auto file = write(name, "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in{path_ / name, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace hubferry::test
