#pragma once

#include <iosfwd>
#include <memory>
#include <string>

namespace boost::json {
class value;
struct value_from_tag;
}  // namespace boost::json

namespace hubferry::obs {

/// Text that must never be printed: a token, a password, a kubeconfig.
///
/// Streams, log fields and JSON show "[redacted]"; only reveal() gives the text, so that every use can be searched for.
/// Copies share one buffer, which is overwritten when the last of them is gone.
class Secret {
 public:
  static constexpr const char* placeholder = "[redacted]";

  Secret() : Secret(std::string{}) {}
  explicit Secret(std::string text);

  [[nodiscard]] const std::string& reveal() const;
  [[nodiscard]] bool empty() const { return reveal().empty(); }

  /// Takes the same time wherever the texts differ.
  friend bool operator==(const Secret& left, const Secret& right);

 private:
  class Buffer;
  std::shared_ptr<const Buffer> buffer_;
};

std::ostream& operator<<(std::ostream& out, const Secret& secret);

/// What boost::json::value_from() calls.
void tag_invoke(const boost::json::value_from_tag& tag, boost::json::value& json, const Secret& secret);

}  // namespace hubferry::obs
