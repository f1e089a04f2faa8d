#include "app/cli/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "hubferry/kube/read_file.hpp"

namespace hubferry::app {

namespace {

[[noreturn]] void throw_unreadable(const std::string& name, const std::error_code& error) {
  throw std::runtime_error("cannot read " + name + ": " + error.message());
}

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::string read_file(const std::string& path) {
  try {
    return kube::read_file(path);
  } catch (const std::system_error& error) {
    throw_unreadable(path, error.code());
  }
}

std::string read_standard_input() {
  std::string text;
  char buffer[4096];
  while (const auto size = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, size);
  if (std::ferror(stdin) != 0) throw_unreadable("standard input", {errno, std::generic_category()});
  return text;
}

void write_private_file(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::remove(path);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) throw_errno("cannot write " + path.string());
  const bool is_written = ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (::close(fd) != 0 || !is_written) throw_errno("cannot write " + path.string());
}

TemporaryDirectory::TemporaryDirectory(const std::string& prefix) {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) throw_errno("cannot create directory " + name);
  path_ = name;
}

std::filesystem::path TemporaryDirectory::keep(const std::string& name) const noexcept {
  try {
    const std::filesystem::path kept = path_.string() + "-" + name;
    std::filesystem::rename(path_ / name, kept);
    return kept;
  } catch (const std::exception&) {
    return {};
  }
}

void TemporaryDirectory::remove() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hubferry::app
