#include "sim/apiserver/http/formats.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/base64.hpp"

namespace hubferry::sim {

namespace {

struct Message;

/// One field of a message: its number in Kubernetes' .proto files, and its name in JSON.
struct Field {
  enum class Type { text, texts, bytes, flag, number, time, text_map, bytes_map, message, messages, ignored };
  unsigned number;
  const char* name;
  Type type;
  const Message* message = nullptr;
};

struct Message {
  std::span<const Field> fields;
};

using Type = Field::Type;

constexpr Field owner_fields[] = {{1, "kind", Type::text},       {3, "name", Type::text},
                                  {4, "uid", Type::text},        {5, "apiVersion", Type::text},
                                  {6, "controller", Type::flag}, {7, "blockOwnerDeletion", Type::flag}};
constexpr Message owner{owner_fields};
// Fields that only the server sets are ignored, as in JSON.
constexpr Field metadata_fields[] = {
    {1, "name", Type::text},
    {2, "generateName", Type::text},
    {3, "namespace", Type::text},
    {4, "selfLink", Type::ignored},
    {5, "uid", Type::text},
    {6, "resourceVersion", Type::text},
    {7, "generation", Type::ignored},
    {8, "creationTimestamp", Type::ignored},
    {9, "deletionTimestamp", Type::ignored},
    {10, "deletionGracePeriodSeconds", Type::ignored},
    {11, "labels", Type::text_map},
    {12, "annotations", Type::text_map},
    {13, "ownerReferences", Type::messages, &owner},
    {14, "finalizers", Type::texts},
    {17, "managedFields", Type::ignored},
};
constexpr Message metadata{metadata_fields};

constexpr Field namespace_fields[] = {
    {1, "metadata", Type::message, &metadata}, {2, "spec", Type::ignored}, {3, "status", Type::ignored}};
constexpr Field config_map_fields[] = {{1, "metadata", Type::message, &metadata},
                                       {2, "data", Type::text_map},
                                       {3, "binaryData", Type::bytes_map},
                                       {4, "immutable", Type::flag}};
constexpr Field secret_fields[] = {{1, "metadata", Type::message, &metadata},
                                   {2, "data", Type::bytes_map},
                                   {3, "type", Type::text},
                                   {4, "stringData", Type::text_map},
                                   {5, "immutable", Type::flag}};
constexpr Field account_fields[] = {{1, "metadata", Type::message, &metadata},
                                    {4, "automountServiceAccountToken", Type::flag}};
constexpr Field rule_fields[] = {{1, "verbs", Type::texts},
                                 {2, "apiGroups", Type::texts},
                                 {3, "resources", Type::texts},
                                 {4, "resourceNames", Type::texts},
                                 {5, "nonResourceURLs", Type::texts}};
constexpr Message rule{rule_fields};
constexpr Field role_fields[] = {{1, "metadata", Type::message, &metadata}, {2, "rules", Type::messages, &rule}};
constexpr Field subject_fields[] = {
    {1, "kind", Type::text}, {2, "apiGroup", Type::text}, {3, "name", Type::text}, {4, "namespace", Type::text}};
constexpr Message subject{subject_fields};
constexpr Field role_ref_fields[] = {{1, "apiGroup", Type::text}, {2, "kind", Type::text}, {3, "name", Type::text}};
constexpr Message role_ref{role_ref_fields};
constexpr Field binding_fields[] = {{1, "metadata", Type::message, &metadata},
                                    {2, "subjects", Type::messages, &subject},
                                    {3, "roleRef", Type::message, &role_ref}};
constexpr Field resource_question_fields[] = {
    {1, "namespace", Type::text}, {2, "verb", Type::text},        {3, "group", Type::text}, {4, "version", Type::text},
    {5, "resource", Type::text},  {6, "subresource", Type::text}, {7, "name", Type::text}};
constexpr Message resource_question{resource_question_fields};
constexpr Field path_question_fields[] = {{1, "path", Type::text}, {2, "verb", Type::text}};
constexpr Message path_question{path_question_fields};
constexpr Field question_fields[] = {{1, "resourceAttributes", Type::message, &resource_question},
                                     {2, "nonResourceAttributes", Type::message, &path_question}};
constexpr Message question{question_fields};
constexpr Field review_fields[] = {
    {1, "metadata", Type::message, &metadata}, {2, "spec", Type::message, &question}, {3, "status", Type::ignored}};
constexpr Field self_review_fields[] = {{1, "metadata", Type::message, &metadata}, {2, "status", Type::ignored}};
constexpr Field request_spec_fields[] = {{1, "request", Type::bytes},   {2, "username", Type::text},
                                         {3, "uid", Type::text},        {4, "groups", Type::texts},
                                         {5, "usages", Type::texts},    {6, "extra", Type::ignored},
                                         {7, "signerName", Type::text}, {8, "expirationSeconds", Type::number}};
constexpr Message request_spec{request_spec_fields};
constexpr Field request_condition_fields[] = {{1, "type", Type::text},
                                              {2, "reason", Type::text},
                                              {3, "message", Type::text},
                                              {4, "lastUpdateTime", Type::time},
                                              {5, "lastTransitionTime", Type::time},
                                              {6, "status", Type::text}};
constexpr Message request_condition{request_condition_fields};
constexpr Field request_status_fields[] = {{1, "conditions", Type::messages, &request_condition},
                                           {2, "certificate", Type::bytes}};
constexpr Message request_status{request_status_fields};
constexpr Field signing_request_fields[] = {{1, "metadata", Type::message, &metadata},
                                            {2, "spec", Type::message, &request_spec},
                                            {3, "status", Type::message, &request_status}};
constexpr Field bound_object_fields[] = {
    {1, "kind", Type::text}, {2, "apiVersion", Type::text}, {3, "name", Type::text}, {4, "uid", Type::text}};
constexpr Message bound_object{bound_object_fields};
constexpr Field token_spec_fields[] = {{1, "audiences", Type::texts},
                                       {3, "boundObjectRef", Type::message, &bound_object},
                                       {4, "expirationSeconds", Type::number}};
constexpr Message token_spec{token_spec_fields};
constexpr Field token_request_fields[] = {
    {1, "metadata", Type::message, &metadata}, {2, "spec", Type::message, &token_spec}, {3, "status", Type::ignored}};
constexpr Field preconditions_fields[] = {{1, "uid", Type::text}, {2, "resourceVersion", Type::text}};
constexpr Message preconditions{preconditions_fields};
constexpr Field delete_fields[] = {{1, "gracePeriodSeconds", Type::number},
                                   {2, "preconditions", Type::message, &preconditions},
                                   {3, "orphanDependents", Type::flag},
                                   {4, "propagationPolicy", Type::text},
                                   {5, "dryRun", Type::texts}};

const Message* find_kind(std::string_view kind) {
  static const std::map<std::string_view, Message> kinds{{"Namespace", {namespace_fields}},
                                                         {"ConfigMap", {config_map_fields}},
                                                         {"Secret", {secret_fields}},
                                                         {"ServiceAccount", {account_fields}},
                                                         {"Role", {role_fields}},
                                                         {"ClusterRole", {role_fields}},
                                                         {"RoleBinding", {binding_fields}},
                                                         {"ClusterRoleBinding", {binding_fields}},
                                                         {"DeleteOptions", {delete_fields}},
                                                         {"CertificateSigningRequest", {signing_request_fields}},
                                                         {"SelfSubjectAccessReview", {review_fields}},
                                                         {"SelfSubjectReview", {self_review_fields}},
                                                         {"TokenRequest", {token_request_fields}}};
  const auto found = kinds.find(kind);
  return found == kinds.end() ? nullptr : &found->second;
}

/// Thrown to end the decoding of an invalid body.
struct Unreadable {
  StatusError failure;
};

[[noreturn]] void give_up(StatusError why) {
  throw Unreadable{std::move(why)};
}

[[noreturn]] void malformed() {
  give_up(errors::bad_request("the body is not Kubernetes protobuf"));
}

/// A field in wire format.
struct Wire {
  unsigned number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool next(Wire& field) {
    if (rest_.empty()) return false;
    const auto tag = varint();
    field = {static_cast<unsigned>(tag >> 3), 0, {}};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        malformed();
    }
    return true;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    malformed();
  }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) malformed();
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

/// Field 1 and field 2 of a message: a map's entry, or the envelope's type.
std::pair<std::string_view, std::string_view> two_texts(std::string_view bytes) {
  std::pair<std::string_view, std::string_view> both;
  Reader reader{bytes};
  Wire wire;
  while (reader.next(wire)) {
    if (wire.number == 1) both.first = wire.bytes;
    if (wire.number == 2) both.second = wire.bytes;
  }
  return both;
}

/// "2030-01-01T00:00:00Z", of a metav1.Time. Empty for one that is not set.
std::string time_text(std::string_view bytes) {
  Reader reader{bytes};
  Wire wire;
  std::int64_t seconds = 0;
  while (reader.next(wire))
    if (wire.number == 1) seconds = static_cast<std::int64_t>(wire.value);
  // Beyond the years that a timestamp can have.
  constexpr std::int64_t last = 253402300799;
  if (seconds <= 0 || seconds > last) return {};
  return async::format_time(async::WallTime{std::chrono::seconds{seconds}});
}

json::object decode(const Message& message, std::string_view bytes) {
  json::object object;
  Reader reader{bytes};
  Wire wire;
  while (reader.next(wire)) {
    const auto field = std::ranges::find(message.fields, wire.number, &Field::number);
    if (field == message.fields.end())
      give_up({415,
               "UnsupportedMediaType",
               "this server supports protobuf only in part, and not field " + std::to_string(wire.number) +
                   " here: send JSON",
               {},
               {}});
    switch (field->type) {
      case Type::text:
        if (!wire.bytes.empty()) object[field->name] = wire.bytes;
        break;
      case Type::texts:
        kube::array_in(object, field->name).emplace_back(wire.bytes);
        break;
      case Type::bytes:
        if (!wire.bytes.empty()) object[field->name] = kube::encode_base64(wire.bytes);
        break;
      case Type::time:
        if (const auto text = time_text(wire.bytes); !text.empty()) object[field->name] = text;
        break;
      case Type::flag:
        object[field->name] = wire.value != 0;
        break;
      case Type::number:
        object[field->name] = static_cast<std::int64_t>(wire.value);
        break;
      case Type::text_map: {
        const auto [key, value] = two_texts(wire.bytes);
        kube::object_in(object, field->name)[key] = value;
        break;
      }
      case Type::bytes_map: {
        const auto [key, value] = two_texts(wire.bytes);
        kube::object_in(object, field->name)[key] = kube::encode_base64(value);
        break;
      }
      case Type::message:
        object[field->name] = decode(*field->message, wire.bytes);
        break;
      case Type::messages:
        kube::array_in(object, field->name).push_back(decode(*field->message, wire.bytes));
        break;
      case Type::ignored:
        break;
    }
  }
  return object;
}

}  // namespace

Outcome<json::object> decode_protobuf(std::string_view body) {
  constexpr std::string_view magic{"k8s\0", 4};
  if (!body.starts_with(magic)) return errors::bad_request("the body is not Kubernetes protobuf");
  try {
    // runtime.Unknown: 1 is the type, 2 the object itself.
    const auto [type, raw] = two_texts(body.substr(magic.size()));
    const auto [api_version, kind] = two_texts(type);
    const auto* message = find_kind(kind);
    if (message == nullptr)
      return StatusError{415,
                         "UnsupportedMediaType",
                         "this server does not support protobuf of kind " + std::string{kind} +
                             ": send JSON, for example with kubectl create -f FILE",
                         {},
                         {}};
    auto object = decode(*message, raw);
    object["apiVersion"] = api_version;
    object["kind"] = kind;
    return object;
  } catch (const Unreadable& unreadable) {
    return unreadable.failure;
  }
}

}  // namespace hubferry::sim
