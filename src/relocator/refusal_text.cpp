#include "relocator/refusal_text.hpp"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/base64.hpp"

namespace hubferry::relocator {

namespace {

namespace json = kube::json;

/// A value shorter than this is no secret; one that is found everywhere would hide every message.
constexpr std::size_t shortest_value = 4;
/// That many characters in a row are a quotation.
constexpr std::size_t quotation = 6;

/// A message, in which the quotations of values are looked for.
class Quotations {
 public:
  explicit Quotations(std::string message) : message_(std::move(message)) {
    const std::string_view text = message_;
    for (std::size_t at = 0; at + quotation <= text.size(); ++at) parts_.insert(text.substr(at, quotation));
  }
  Quotations(const Quotations&) = delete;
  Quotations& operator=(const Quotations&) = delete;

  [[nodiscard]] bool any_of(std::string_view value) const {
    if (value.size() < shortest_value) return false;
    if (value.size() < quotation) return message_.find(value) != std::string::npos;
    for (std::size_t at = 0; at + quotation <= value.size(); ++at)
      if (parts_.contains(value.substr(at, quotation))) return true;
    return false;
  }

 private:
  const std::string message_;
  std::unordered_set<std::string_view> parts_;  // of message_
};

bool is_part_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view{"-._+/="}.find(c) != std::string_view::npos;
}

/// Names are no secret, and are in most messages. Only as words: a short one may be in the middle of a value.
std::string without_name(std::string message, std::string_view name) {
  if (name.empty()) return message;
  for (auto at = message.find(name); at != std::string::npos; at = message.find(name, at + 1)) {
    const auto end = at + name.size();
    if (at > 0 && is_part_of_word(message[at - 1])) continue;
    if (end < message.size() && is_part_of_word(message[end])) continue;
    message.replace(at, name.size(), 1, '\0');
  }
  return message;
}

/// Calls `visit` with each value of the Secrets in it: it is one, or a SyncSet that has some among its resources.
template <typename Visit>
void visit_secrets(const json::value& from, const Visit& visit) {
  if (const auto* object = from.if_object()) {
    if (kube::string_at(*object, {"kind"}) == "Secret")
      for (const auto* field : {"data", "stringData"})
        if (const auto* values = kube::find(*object, {field}); values != nullptr && values->is_object())
          for (const auto& entry : values->get_object())
            if (entry.value().is_string()) visit(std::string_view{entry.value().get_string()});
    for (const auto& field : *object) visit_secrets(field.value(), visit);
  } else if (const auto* elements = from.if_array()) {
    for (const auto& element : *elements) visit_secrets(element, visit);
  }
}

bool quotes_content(const std::string& message, const json::object& object) {
  const Quotations quotations{without_name(without_name(message, kube::string_at(object, {"metadata", "name"})),
                                           kube::string_at(object, {"metadata", "namespace"}))};
  bool quoted = false;
  visit_secrets(object, [&](std::string_view value) {
    const auto decoded = kube::decode_base64(value);
    quoted = quoted || quotations.any_of(value) || (decoded && quotations.any_of(*decoded));
  });
  return quoted;
}

bool has_secrets(const json::object& object) {
  bool found = false;
  visit_secrets(object, [&](std::string_view) { found = true; });
  return found;
}

/// The webhook or policy that has refused it, as the API server names it; empty: none has.
std::string refuser(std::string_view message) {
  for (const std::string_view phrase : {R"(admission webhook ")", "ValidatingAdmissionPolicy '"}) {
    const auto begin = message.find(phrase);
    if (begin == std::string_view::npos) continue;
    const auto end = message.find(phrase.back(), begin + phrase.size());
    return std::string{message.substr(begin, end == std::string_view::npos ? phrase.size() : end + 1 - begin)};
  }
  return {};
}

}  // namespace

std::string refusal_text(const kube::Resource& resource, const json::object& object, const kube::Error& error) {
  const auto typed = kube::with_type(resource, object);
  if (error.message.empty() || (resource != kube::resources::secrets && !has_secrets(typed))) return error.describe();
  auto bare = error;
  bare.message.clear();
  const auto refused = "the destination refuses it: " + bare.describe();
  if (const auto by = refuser(error.message); !by.empty())
    return refused + " by " + by + ", whose message is not shown: it may quote its content";
  if (quotes_content(error.message, typed)) return refused + ", with a message that quotes its content";
  return error.describe();
}

}  // namespace hubferry::relocator
