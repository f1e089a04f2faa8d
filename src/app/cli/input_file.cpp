#include "app/cli/input_file.hpp"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "hubferry/kube/read_file.hpp"

namespace hubferry::app {

namespace {

[[noreturn]] void refuse_input(const std::string& name, const std::error_code& error) {
  throw std::runtime_error("cannot read " + name + ": " + error.message());
}

}  // namespace

std::string read_file(const std::string& path) {
  try {
    return kube::read_file(path);
  } catch (const std::system_error& error) {
    refuse_input(path, error.code());
  }
}

std::string read_standard_input() {
  std::string text;
  char piece[4096];
  while (const auto size = std::fread(piece, 1, sizeof piece, stdin)) text.append(piece, size);
  if (std::ferror(stdin) != 0) refuse_input("standard input", {errno, std::generic_category()});
  return text;
}

}  // namespace hubferry::app
