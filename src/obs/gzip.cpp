#include "obs/gzip.hpp"

#include <zlib.h>

#include <stdexcept>

namespace hubferry::obs {

namespace {

// Metrics are repetitive: the fastest level already makes them a tenth, and the loop waits for it.
constexpr int level = Z_BEST_SPEED;
constexpr int window_bits = 15 + 16;  // + 16: a gzip header instead of zlib's
constexpr int memory_level = 8;

}  // namespace

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, window_bits, memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot start");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("zlib failed");
  return packed;
}

}  // namespace hubferry::obs
