#include "kube/http/inflate.hpp"

#include <zlib.h>

#include <limits>
#include <vector>

namespace hubferry::kube::http {

namespace {

Error damaged(std::string message) {
  return {ErrorKind::bad_response, 0, {}, std::move(message), std::nullopt};
}

/// zlib's state, freed with it.
class Inflater {
 public:
  Inflater() {
    // 15 bits of window, and 16 for a gzip header.
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  [[nodiscard]] bool ready() const { return ready_; }
  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

Result<std::string> inflate_gzip(std::string_view compressed, std::size_t limit) {
  Inflater inflater;
  if (!inflater.ready()) return damaged("zlib could not be started");
  if (compressed.size() > std::numeric_limits<uInt>::max()) return damaged("the compressed answer is too large");
  inflater->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  inflater->avail_in = static_cast<uInt>(compressed.size());

  // In pieces, so that memory grows with what has come out: the size is not known before.
  constexpr std::size_t piece_size = 64UL * 1024;
  std::vector<char> piece(piece_size);
  std::string plain;
  while (true) {
    inflater->next_out = reinterpret_cast<Bytef*>(piece.data());
    inflater->avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(inflater.get(), Z_NO_FLUSH);
    plain.append(piece.data(), piece.size() - inflater->avail_out);
    if (plain.size() > limit) return damaged("the answer is larger than " + std::to_string(limit) + " bytes");
    if (status == Z_STREAM_END) break;
    if (status != Z_OK && status != Z_BUF_ERROR) return damaged("the gzip data is damaged");
    if (inflater->avail_in == 0 && inflater->avail_out != 0) return damaged("the gzip data is cut off");
  }
  return plain;
}

}  // namespace hubferry::kube::http
