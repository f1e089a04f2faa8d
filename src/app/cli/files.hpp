#pragma once

#include <filesystem>
#include <string>

namespace hubferry::app {

/// The content of a file that the user named. Throws std::runtime_error with the path and the cause.
std::string read_file(const std::string& path);

/// Standard input, to its end. Throws as read_file().
std::string read_standard_input();

/// Creates or replaces a file that only this user can read, for credentials. Throws std::system_error.
void write_private_file(const std::filesystem::path& path, const std::string& content);

/// A directory below the system's temporary directory, accessible to this user only. Deleted with the object.
class TemporaryDirectory {
 public:
  /// The directory's name begins with `prefix`. Throws std::system_error.
  explicit TemporaryDirectory(const std::string& prefix);
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { remove(); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Moves a file out of the directory, so that it is not deleted: to DIRECTORY-FILE beside it. Returns the new path,
  /// or an empty one on failure. Never throws.
  [[nodiscard]] std::filesystem::path keep(const std::string& name) const noexcept;
  /// Deletes it now. Never throws.
  void remove() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace hubferry::app
