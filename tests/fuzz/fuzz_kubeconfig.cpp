// Any text at all must give a configuration or a ConfigError; and what was read must survive being written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hubferry/kube/config.hpp"

namespace {

using namespace hubferry::kube;

// Without a base: the fuzzer must not make us read files.
ClientConfig parse(std::string_view text) {
  return parse_kubeconfig(text, "input", std::nullopt);
}

bool same(const ClientConfig& a, const ClientConfig& b) {
  return a.server == b.server && a.ca_pem == b.ca_pem && a.ns == b.ns && a.token == b.token &&
         a.client_certificate_pem == b.client_certificate_pem && a.client_key_pem == b.client_key_pem &&
         a.insecure_skip_tls_verify == b.insecure_skip_tls_verify && a.tls_server_name == b.tls_server_name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ClientConfig config;
  try {
    config = parse({reinterpret_cast<const char*>(data), size});
  } catch (const ConfigError&) {
    return 0;
  }
  // A ConfigError from here on is a bug as well: it ends the run, as does any other exception.
  if (!same(config, parse(to_kubeconfig(config)))) std::abort();
  return 0;
}
