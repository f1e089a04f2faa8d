#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/base64.hpp"
#include "sim/apiserver/core.hpp"

namespace hubferry::sim {

namespace {

RbacAuthorizer::Question question_from(const json::object& attributes) {
  return {kube::string_at(attributes, {"verb"}),      kube::string_at(attributes, {"group"}),
          kube::string_at(attributes, {"resource"}),  kube::string_at(attributes, {"subresource"}),
          kube::string_at(attributes, {"namespace"}), kube::string_at(attributes, {"name"})};
}

json::object to_json(const User& user) {
  json::object shown{{"username", user.name}, {"groups", json::array(user.groups.begin(), user.groups.end())}};
  if (!user.uid.empty()) shown["uid"] = user.uid;
  return shown;
}

/// A token in the shape of a JSON web token; only the server that issued it accepts it.
std::string make_token(const std::string& user, std::optional<async::WallTime> expires, async::Random& random) {
  const auto part = [](std::string_view bytes) {
    std::string text = kube::encode_base64(bytes);
    std::erase(text, '=');
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    return text;
  };
  json::object claims{{"iss", "https://kubernetes.default.svc"}, {"sub", user}};
  if (expires) claims["exp"] = std::chrono::duration_cast<std::chrono::seconds>(expires->time_since_epoch()).count();
  return part(R"({"alg":"RS256","kid":"sim"})") + "." + part(json::serialize(claims)) + "." + part(random.suffix(32));
}

}  // namespace

std::string Core::add_token(User user, std::optional<async::WallTime> expires, std::string account_uid) {
  std::string token = make_token(user.name, expires, random);
  tokens_[token] = {std::move(user), expires, std::move(account_uid)};
  return token;
}

std::optional<User> Core::authenticate(const std::string& token) const {
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) return std::nullopt;
  const auto& [user, expires, account_uid] = found->second;
  if (expires && clock_.wall_now() >= *expires) return std::nullopt;
  if (!account_uid.empty() && !store_.exists(account_uid)) return std::nullopt;
  return user;
}

CertificateAuthority& Core::authority() {
  if (authority_ == nullptr) authority_ = std::make_unique<CertificateAuthority>(options_.name, clock_.wall_now());
  return *authority_;
}

Outcome<kube::Object> Core::review(const User& user, const Kind& kind, const json::object& body) const {
  json::object answer = body;
  answer["apiVersion"] = kind.resource.api_version();
  answer["kind"] = kind.resource.kind;
  if (!answer.contains("metadata")) answer["metadata"] = json::object{{"creationTimestamp", nullptr}};
  const auto& name = kind.resource.kind;
  if (name == "SelfSubjectReview") {
    answer["status"] = json::object{{"userInfo", to_json(user)}};
    return kube::Object{std::move(answer)};
  }
  if (name == "SelfSubjectRulesReview") {
    const auto ns = kube::string_at(body, {"spec", "namespace"});
    if (ns.empty()) return errors::bad_request("no namespace on request");
    answer["status"] = json::object{
        {"resourceRules", authorizer_.rules_for(user, ns)}, {"nonResourceRules", json::array{}}, {"incomplete", false}};
    return kube::Object{std::move(answer)};
  }
  if (name == "TokenReview") {
    const auto known = authenticate(std::string{kube::string_at(body, {"spec", "token"})});
    json::object status{{"authenticated", known.has_value()}};
    if (known)
      status["user"] = to_json(*known);
    else
      status["error"] = "invalid bearer token";
    answer["status"] = std::move(status);
    return kube::Object{std::move(answer)};
  }
  User subject = user;
  if (name == "SubjectAccessReview") {
    subject = User{std::string{kube::string_at(body, {"spec", "user"})}, {}, {}};
    if (const auto* groups = kube::find(body, {"spec", "groups"}); groups != nullptr && groups->is_array())
      for (const auto& group : groups->get_array())
        if (group.is_string()) subject.groups.emplace_back(group.get_string());
  }
  bool allowed = false;
  if (const auto* attributes = kube::find(body, {"spec", "resourceAttributes"});
      attributes != nullptr && attributes->is_object()) {
    allowed = authorizer_.allows(subject, question_from(attributes->get_object()));
  } else if (const auto* path = kube::find(body, {"spec", "nonResourceAttributes"});
             path != nullptr && path->is_object()) {
    allowed = authorizer_.allows_path(subject, kube::string_at(path->get_object(), {"verb"}),
                                      kube::string_at(path->get_object(), {"path"}));
  } else {
    const std::vector<FieldError> field_errors{
        {"spec.resourceAttributes",
         "Invalid value: \"null\": exactly one of nonResourceAttributes or resourceAttributes must be specified",
         "FieldValueInvalid"}};
    return errors::invalid(kind.resource, "", field_errors);
  }
  answer["status"] = json::object{{"allowed", allowed}};
  return kube::Object{std::move(answer)};
}

Outcome<kube::Object> Core::request_token(const kube::Request& request) {
  const auto* accounts = kinds_.find(kube::resources::service_accounts);
  const auto found = accounts->collection->entries.find(request.key);
  if (found == accounts->collection->entries.end())
    return errors::not_found(kube::resources::service_accounts, request.key.name);
  std::chrono::seconds lifetime{3600};
  if (const auto* seconds = kube::find(request.body, {"spec", "expirationSeconds"}); seconds != nullptr) {
    if (seconds->is_int64()) lifetime = std::chrono::seconds{seconds->get_int64()};
    if (seconds->is_uint64()) lifetime = std::chrono::seconds::max();  // larger than any signed number
  }
  if (lifetime < std::chrono::minutes{10}) {
    const std::vector<FieldError> field_errors{
        {"spec.expirationSeconds",
         "Invalid value: " + std::to_string(lifetime.count()) + ": may not specify a duration less than 10 minutes",
         "FieldValueInvalid"}};
    return errors::invalid({"authentication.k8s.io", "v1", "tokenrequests", "TokenRequest", true}, "", field_errors);
  }
  // The real server's limit; it also keeps the sum below representable.
  constexpr std::chrono::seconds longest{1LL << 32};
  if (lifetime > longest) {
    const std::vector<FieldError> field_errors{
        {"spec.expirationSeconds",
         "Invalid value: " + std::to_string(lifetime.count()) + ": may not specify a duration larger than 2^32 seconds",
         "FieldValueInvalid"}};
    return errors::invalid({"authentication.k8s.io", "v1", "tokenrequests", "TokenRequest", true}, "", field_errors);
  }
  const auto expires = clock_.wall_now() + lifetime;
  const auto& key = request.key;
  User user{"system:serviceaccount:" + key.ns + ":" + key.name,
            {"system:serviceaccounts", "system:serviceaccounts:" + key.ns, "system:authenticated"},
            std::string{found->second.object.uid()}};
  json::object answer = request.body.is_object() ? request.body.get_object() : json::object{};
  answer["apiVersion"] = "authentication.k8s.io/v1";
  answer["kind"] = "TokenRequest";
  answer["metadata"] = json::object{{"name", key.name}, {"namespace", key.ns}, {"creationTimestamp", timestamp()}};
  auto& spec = answer["spec"];
  if (!spec.is_object()) spec = json::object{};
  spec.get_object()["expirationSeconds"] = lifetime.count();
  const std::string uid = user.uid;
  answer["status"] = json::object{{"token", request.dry_run ? "" : add_token(std::move(user), expires, uid)},
                                  {"expirationTimestamp", async::format_time(expires)}};
  return kube::Object{std::move(answer)};
}

kube::ClientConfig describe_server(Core& core, const std::string& url) {
  kube::ClientConfig config;
  config.name = core.options().name;
  config.cluster_name = core.options().name;
  config.source = "the simulated server " + core.options().name;
  config.server = url;
  if (url.starts_with("https://")) config.ca_pem = core.authority().certificate_pem();
  return config;
}

void add_credential(kube::ClientConfig& config, Core& core, const User& user, bool by_certificate) {
  if (!by_certificate) {
    config.token = core.add_token(user, std::nullopt, {});
    return;
  }
  auto pair = core.authority().issue_client(user.name, user.groups, core.clock().wall_now());
  config.client_certificate_pem = std::move(pair.certificate);
  config.client_key_pem = std::move(pair.key);
}

}  // namespace hubferry::sim
