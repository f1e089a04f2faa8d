#include "kube/config/exec_credential.hpp"

#include <boost/json.hpp>
#include <charconv>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/object.hpp"
#include "kube/config/credential_source.hpp"

namespace hubferry::kube {

namespace {

std::string text_field(const json::object& status, std::string_view field) {
  const auto* value = status.if_contains(field);
  if (value == nullptr || value->is_null()) return {};
  if (!value->is_string()) throw ConfigError("status." + std::string{field} + " is not a string");
  return std::string{std::string_view{value->get_string()}};
}

std::optional<async::WallTime> expiration(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    // Nanoseconds since 1970 end in 2262, and some plugins say "never" by the year 9999: the shape is checked with
    // another year first.
    async::parse_time(text.size() < 4 ? text : "2000" + text.substr(4));
    int year = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + 4, year);
    if (error != std::errc{} || end != text.data() + 4 || year < 0) throw std::invalid_argument("year");
    if (year >= 2262) return std::nullopt;
    if (year < 1970) return async::WallTime{};
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    throw ConfigError("status.expirationTimestamp is not an RFC 3339 time");
  }
}

json::object parse_object(std::string_view output) {
  json::error_code error;
  auto value = json::parse(output, error);
  if (error) throw ConfigError("its output is not JSON: " + error.message());
  if (!value.is_object()) throw ConfigError("its output is not a JSON object");
  return std::move(value.get_object());
}

}  // namespace

ExecCredential parse_exec_credential(std::string_view output, const std::string& api_version) {
  if (output.find_first_not_of(" \t\r\n") == std::string_view::npos) throw ConfigError("it wrote nothing");
  const auto object = parse_object(output);
  if (string_at(object, {"kind"}) != "ExecCredential") throw ConfigError("its output is not of kind ExecCredential");
  if (string_at(object, {"apiVersion"}) != api_version)
    throw ConfigError("it answered in another apiVersion than " + api_version);
  const auto* status = object.if_contains("status");
  if (status == nullptr || !status->is_object()) throw ConfigError("its output has no status");

  const auto& fields = status->get_object();
  ExecCredential credential;
  credential.token = text_field(fields, "token");
  if (!fits_into_a_header(credential.token)) throw ConfigError("status.token holds characters that no token has");
  ClientCertificate certificate{text_field(fields, "clientCertificateData"), text_field(fields, "clientKeyData")};
  if (certificate.certificate_pem.empty() != certificate.key_pem.empty())
    throw ConfigError("it gave only one of clientCertificateData and clientKeyData");
  if (!certificate.key_pem.empty()) credential.certificate = std::move(certificate);
  if (credential.token.empty() && !credential.certificate)
    throw ConfigError("it gave neither a token nor a client certificate");
  credential.expires = expiration(text_field(fields, "expirationTimestamp"));
  return credential;
}

std::string exec_info(const ClientConfig& config) {
  json::object spec{{"interactive", config.exec->is_interactive()}};
  if (config.exec->provide_cluster_info) {
    json::object cluster{{"server", config.server}};
    if (!config.tls_server_name.empty()) cluster["tls-server-name"] = config.tls_server_name;
    if (config.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!config.ca_pem.empty()) cluster["certificate-authority-data"] = encode_base64(config.ca_pem);
    spec["cluster"] = std::move(cluster);
  }
  const json::object info{
      {"apiVersion", config.exec->api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}};
  return json::serialize(info);
}

}  // namespace hubferry::kube
