#include "app/cli/temporary_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

namespace hubferry::app {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& prefix) {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) fail("cannot make a folder " + name);
  path_ = name;
}

std::filesystem::path TemporaryFolder::write(const std::string& name, const std::string& content) const {
  const auto file = path_ / name;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) fail("cannot write " + file.string());
  const bool is_written = ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (::close(fd) != 0 || !is_written) fail("cannot write " + file.string());
  return file;
}

std::filesystem::path TemporaryFolder::keep(const std::string& name) const noexcept {
  try {
    const std::filesystem::path kept = path_.string() + "-" + name;
    std::filesystem::rename(path_ / name, kept);
    return kept;
  } catch (const std::exception&) {
    return {};
  }
}

void TemporaryFolder::remove() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hubferry::app
