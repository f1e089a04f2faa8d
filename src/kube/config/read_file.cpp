#include "hubferry/kube/read_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace hubferry::kube {

namespace {

[[noreturn]] void fail(int error) {
  throw std::system_error(error, std::generic_category());
}

struct Descriptor {
  int number;
  ~Descriptor() { ::close(number); }
};

}  // namespace

std::string read_file(const std::filesystem::path& file, std::size_t limit) {
  const Descriptor descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (descriptor.number < 0) fail(errno);
  std::string content;
  char block[16384];
  while (true) {
    const auto count = ::read(descriptor.number, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    if (count == 0) return content;
    content.append(block, static_cast<std::size_t>(count));
    if (content.size() > limit) fail(EFBIG);
  }
}

std::string trimmed(std::string text) {
  constexpr std::string_view spaces = " \t\r\n";
  text.erase(text.find_last_not_of(spaces) + 1);
  text.erase(0, text.find_first_not_of(spaces));
  return text;
}

}  // namespace hubferry::kube
