#include "app/doctor/archive.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace hubferry::app {

namespace {

constexpr std::size_t block = 512;

/// A header of the format ustar: POSIX.1-1988.
std::array<char, block> header_of(const std::string& path, std::size_t size, std::int64_t modified) {
  std::array<char, block> header{};
  const auto put = [&](std::size_t at, std::size_t width, const char* format, unsigned long long value) {
    std::snprintf(header.data() + at, width, format, value);
  };
  if (path.size() > 100) throw std::runtime_error("the path is too long for the archive: " + path);
  std::memcpy(header.data(), path.data(), path.size());
  put(100, 8, "%07llo", 0600);
  put(108, 8, "%07llo", 0);
  put(116, 8, "%07llo", 0);
  put(124, 12, "%011llo", size);
  put(136, 12, "%011llo", static_cast<unsigned long long>(modified));
  header[156] = '0';
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  // The checksum counts its own field as spaces.
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, 7, "%06llo", sum);
  return header;
}

}  // namespace

void write_archive(const std::filesystem::path& archive, const std::map<std::string, std::string>& files,
                   std::int64_t modified) {
  const auto fail = [&](const char* why) { throw std::runtime_error("cannot write " + archive.string() + ": " + why); };
  const int descriptor = open(archive.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) fail(std::strerror(errno));
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> out{gzdopen(descriptor, "wb"), gzclose};
  if (out == nullptr) {
    close(descriptor);
    fail("no memory");
  }
  const auto write = [&](const char* data, std::size_t size) {
    if (size > 0 && gzwrite(out.get(), data, static_cast<unsigned>(size)) != static_cast<int>(size)) fail("disk full?");
  };
  const std::array<char, 2 * block> zeros{};
  for (const auto& [path, content] : files) {
    const auto header = header_of(path, content.size(), modified);
    write(header.data(), header.size());
    write(content.data(), content.size());
    write(zeros.data(), (block - content.size() % block) % block);
  }
  write(zeros.data(), zeros.size());
  if (gzflush(out.get(), Z_FINISH) != Z_OK) fail("disk full?");
}

}  // namespace hubferry::app
