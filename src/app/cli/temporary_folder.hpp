#pragma once

#include <filesystem>
#include <string>

namespace hubferry::app {

/// A folder below the system's place for temporary files, only for this user, that goes with the object.
class TemporaryFolder {
 public:
  /// `prefix` begins its name. Throws std::system_error.
  explicit TemporaryFolder(const std::string& prefix);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { remove(); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file that only this user can read.
  std::filesystem::path write(const std::string& name, const std::string& content) const;
  /// Moves a file out of it, so that it stays: beside the folder, under its name with that of the file. Returns where.
  /// Never throws; empty: there was no way.
  std::filesystem::path keep(const std::string& name) const noexcept;
  /// Removes it now. Never throws.
  void remove() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace hubferry::app
