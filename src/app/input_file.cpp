#include "app/input_file.hpp"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace hubferry::app {

namespace {

[[noreturn]] void refuse_input(const std::string& name, int error) {
  throw std::runtime_error("cannot read " + name + ": " + std::generic_category().message(error));
}

std::string read_all(std::FILE* file, const std::string& name) {
  std::string text;
  char piece[4096];
  while (const auto size = std::fread(piece, 1, sizeof piece, file)) text.append(piece, size);
  if (std::ferror(file) != 0) refuse_input(name, errno);
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "re"), &std::fclose};
  if (file == nullptr) refuse_input(path, errno);
  return read_all(file.get(), path);
}

std::string read_standard_input() {
  return read_all(stdin, "standard input");
}

}  // namespace hubferry::app
