#include <boost/json/parse.hpp>

#include "hubferry/kube/decoder.hpp"

namespace hubferry::kube {

namespace {

class ObjectDecoder final : public Decoder {
 public:
  [[nodiscard]] Result<Decoded> from_bytes(std::string_view bytes) const override {
    boost::system::error_code ec;
    json::value parsed = json::parse(bytes, ec);
    if (ec) return bad_response("this is no JSON: " + ec.message());
    if (!parsed.is_object()) return bad_response("expected a JSON object");
    return from_object(Object{std::move(parsed.get_object())});
  }

  [[nodiscard]] Result<Decoded> from_object(const Object& object) const override {
    return Decoded{object.key(), std::string{object.resource_version()}, std::make_shared<const Object>(object)};
  }

 private:
  static Error bad_response(std::string message) {
    return {ErrorKind::bad_response, 0, {}, std::move(message), std::nullopt};
  }
};

}  // namespace

const Decoder& object_decoder() {
  static const ObjectDecoder decoder;
  return decoder;
}

}  // namespace hubferry::kube
