#pragma once

#include <memory>
#include <string_view>

#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

/// An object in the form that a cache keeps: the whole JSON, or a projection that holds only what is used.
struct Decoded {
  Key key;
  std::string resource_version;
  std::shared_ptr<const void> object;  // of the decoder's type; null for a bookmark
  std::size_t bytes = 0;               // as it was sent; 0: not known
};

/// Turns what a server sends into what a reader keeps. It runs on the loop of the connection, before anything is
/// handed over; so it must be stateless, or at least safe to use from several loops at once.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// From the bytes of one JSON object. Errors: bad_response, with the position.
  [[nodiscard]] virtual Result<Decoded> from_bytes(std::string_view bytes) const = 0;
  /// From an object that is in memory already (a simulated server, an answer to a write).
  [[nodiscard]] virtual Result<Decoded> from_object(const Object& object) const = 0;
};

/// Keeps everything but managedFields; the type is Object.
const Decoder& object_decoder();

}  // namespace hubferry::kube
