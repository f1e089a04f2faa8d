#include "hubferry/obs/secret.hpp"

#include <openssl/crypto.h>

#include <boost/json/value.hpp>
#include <boost/json/value_from.hpp>
#include <ostream>

namespace hubferry::obs {

class Secret::Buffer {
 public:
  explicit Buffer(std::string&& text) : text(std::move(text)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { OPENSSL_cleanse(text.data(), text.size()); }

  std::string text;
};

Secret::Secret(std::string text) {
  // A short text lives inside the string object, and moving it leaves a copy behind.
  const auto left_behind = text.size();
  buffer_ = std::make_shared<const Buffer>(std::move(text));
  text.resize(left_behind);  // NOLINT(bugprone-use-after-move): to reach what moving left behind
  OPENSSL_cleanse(text.data(), text.size());
}

const std::string& Secret::reveal() const {
  return buffer_->text;
}

bool operator==(const Secret& left, const Secret& right) {
  const auto& a = left.reveal();
  const auto& b = right.reveal();
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::ostream& operator<<(std::ostream& out, const Secret&) {
  return out << Secret::placeholder;
}

void tag_invoke(const boost::json::value_from_tag&, boost::json::value& json, const Secret&) {
  json = Secret::placeholder;
}

}  // namespace hubferry::obs
