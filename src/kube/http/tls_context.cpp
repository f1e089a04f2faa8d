#include "kube/http/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "hubferry/kube/openssl.hpp"

namespace hubferry::kube::http {

namespace {

using boost::system::error_code;

/// Where a stream finds the TlsContext that has prepared it.
int owner_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

error_code last_error() {
  const auto code = ERR_get_error();
  if (code == 0) return boost::system::errc::make_error_code(boost::system::errc::invalid_argument);
  return {static_cast<int>(code), asio::error::get_ssl_category()};
}

/// OpenSSL would ask for a passphrase on the terminal, and block the loop until somebody answers.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

void require(const error_code& ec, const ClientConfig& config, std::string_view what) {
  if (!ec) return;
  throw ConfigError((config.source.empty() ? "" : config.source + ": ") + std::string{what} +
                    " cannot be used: " + ec.message());
}

std::string time_text(const ASN1_TIME* time) {
  const auto bio = openssl::make_bio();
  ASN1_TIME_print(bio.get(), time);
  return openssl::content_of(bio);
}

std::string name_text(const X509_NAME* name) {
  const auto bio = openssl::make_bio();
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE);
  return openssl::content_of(bio);
}

/// "localhost, 10.0.0.1": the names that a certificate is for.
std::string alternative_names(X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string text;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    std::string one;
    if (name->type == GEN_DNS) {
      one.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                 static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const auto* bytes = ASN1_STRING_get0_data(name->d.iPAddress);
      if (ASN1_STRING_length(name->d.iPAddress) == 4) {
        asio::ip::address_v4::bytes_type v4;
        std::copy_n(bytes, v4.size(), v4.begin());
        one = asio::ip::make_address_v4(v4).to_string();
      } else if (ASN1_STRING_length(name->d.iPAddress) == 16) {
        asio::ip::address_v6::bytes_type v6;
        std::copy_n(bytes, v6.size(), v6.begin());
        one = asio::ip::make_address_v6(v6).to_string();
      }
    }
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  GENERAL_NAMES_free(names);
  return text.empty() ? "no name at all" : text;
}

}  // namespace

namespace {

std::shared_ptr<asio::ssl::context> make_context(const ClientConfig& config, int (*new_session)(SSL*, SSL_SESSION*)) {
  auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX* native = made->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Thousands of idle connections should not hold on to their record buffers.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // As in Go. A connection gives its certificate back after the handshake, and would have none for another one.
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(native, new_session);
  if (config.insecure_skip_tls_verify) {
    made->set_verify_mode(asio::ssl::verify_none);
    return made;
  }
  made->set_verify_mode(asio::ssl::verify_peer);
  // As in Go, each certificate given is an anchor, self-signed or not.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(native), X509_V_FLAG_PARTIAL_CHAIN);
  error_code ec;
  if (config.ca_pem.empty()) {
    made->set_default_verify_paths(ec);
    require(ec, config, "the system's certificate authorities");
    return made;
  }
  made->add_certificate_authority(asio::buffer(config.ca_pem), ec);
  // Text without any certificate passes as an empty list.
  if (config.ca_pem.find("-----BEGIN ") == std::string::npos)
    ec = boost::system::errc::make_error_code(boost::system::errc::invalid_argument);
  require(ec, config, "certificate-authority-data");
  return made;
}

std::string version_of(const char* variable, const char* standard) {
  const char* chosen = std::getenv(variable);
  struct stat found{};
  if (::stat(chosen != nullptr ? chosen : standard, &found) != 0) return "none ";
  return std::to_string(found.st_dev) + "/" + std::to_string(found.st_ino) + "/" + std::to_string(found.st_size) + "/" +
         std::to_string(found.st_mtim.tv_sec) + "." + std::to_string(found.st_mtim.tv_nsec) + " ";
}

/// Changes whenever the system's authorities do.
std::string version_of_system_authorities() {
  return "system " + version_of(X509_get_default_cert_file_env(), X509_get_default_cert_file()) +
         version_of(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
}

bool trusts_system(const ClientConfig& config) {
  return !config.insecure_skip_tls_verify && config.ca_pem.empty();
}

/// The context for this configuration: an existing one, if it is in use. From any thread; contexts are not changed once
/// they are made. `system`: see version_of_system_authorities(); empty: they are not those trusted.
std::shared_ptr<asio::ssl::context> shared_context(const ClientConfig& config, const std::string& system,
                                                   int (*new_session)(SSL*, SSL_SESSION*)) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<asio::ssl::context>> contexts;
  const std::string key = config.insecure_skip_tls_verify ? "-" : system + config.ca_pem;
  const std::lock_guard lock{mutex};
  std::erase_if(contexts, [](const auto& entry) { return entry.second.expired(); });
  auto& known = contexts[key];
  auto context = known.lock();
  if (context == nullptr) {
    context = make_context(config, new_session);
    known = context;
  }
  return context;
}

/// What of a client certificate cannot be used.
struct Flaw {
  std::string_view part;
  error_code error;
};

struct FreeChain {
  void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, X509_free); }
};

/// nullopt: the stream has it now. Also checks that certificate and key belong together.
std::optional<Flaw> give_certificate(SSL* stream, const ClientCertificate& pem) {
  ERR_clear_error();
  const auto certificates = openssl::reader_of(pem.certificate_pem);
  const openssl::Certificate leaf{PEM_read_bio_X509_AUX(certificates.get(), nullptr, &no_passphrase, nullptr)};
  if (leaf == nullptr) return Flaw{"client-certificate-data", last_error()};
  const std::unique_ptr<STACK_OF(X509), FreeChain> chain{sk_X509_new_null()};
  while (auto* next = PEM_read_bio_X509(certificates.get(), nullptr, &no_passphrase, nullptr))
    sk_X509_push(chain.get(), next);
  const auto end = ERR_peek_last_error();
  if (ERR_GET_LIB(end) != ERR_LIB_PEM || ERR_GET_REASON(end) != PEM_R_NO_START_LINE)
    return Flaw{"client-certificate-data", last_error()};
  ERR_clear_error();
  const auto keys = openssl::reader_of(pem.key_pem);
  const openssl::Key key{PEM_read_bio_PrivateKey(keys.get(), nullptr, &no_passphrase, nullptr)};
  if (key == nullptr || SSL_use_cert_and_key(stream, leaf.get(), key.get(), chain.get(), 1) != 1)
    return Flaw{"client-key-data", last_error()};
  return std::nullopt;
}

}  // namespace

TlsContext::TlsContext(const ClientConfig& config, const ServerUrl& url,
                       std::shared_ptr<const ClientCertificate> certificate)
    : system_authorities_(trusts_system(config) ? version_of_system_authorities() : std::string{}),
      context_(shared_context(config, system_authorities_, &TlsContext::keep_session)),
      certificate_(std::move(certificate)),
      verifies_(!config.insecure_skip_tls_verify),
      authority_(url.authority()),
      server_name_(config.tls_server_name.empty() ? url.host_without_zone() : config.tls_server_name) {
  error_code ec;
  asio::ip::make_address(server_name_, ec);
  name_is_address_ = !ec;
  if (certificate_ == nullptr) return;
  if (certificate_->key_pem.find("ENCRYPTED") != std::string::npos)
    throw ConfigError((config.source.empty() ? "" : config.source + ": ") +
                      "client-key-data is encrypted: a key without a passphrase is needed");
  const std::unique_ptr<SSL, openssl::Freer<SSL_free>> trial{SSL_new(context_->native_handle())};
  if (trial == nullptr) throw std::bad_alloc{};
  if (const auto flaw = give_certificate(trial.get(), *certificate_)) require(flaw->error, config, flaw->part);
}

bool TlsContext::is_outdated() const {
  return !system_authorities_.empty() && system_authorities_ != version_of_system_authorities();
}

TlsContext::~TlsContext() {
  if (session_ != nullptr) SSL_SESSION_free(session_);
}

void TlsContext::prepare(SSL* stream) {
  SSL_set_ex_data(stream, owner_index(), this);
  if (certificate_ != nullptr)
    if (const auto flaw = give_certificate(stream, *certificate_)) throw boost::system::system_error(flaw->error);
  if (!name_is_address_) SSL_set_tlsext_host_name(stream, server_name_.c_str());
  if (verifies_) {
    X509_VERIFY_PARAM* rules = SSL_get0_param(stream);
    // As in Go, a certificate without subjectAltName is for no name at all.
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const int accepted = name_is_address_
                             ? X509_VERIFY_PARAM_set1_ip_asc(rules, server_name_.c_str())
                             : X509_VERIFY_PARAM_set1_host(rules, server_name_.c_str(), server_name_.size());
    // Without a name to check, OpenSSL would take the certificate of any server.
    if (accepted != 1)
      throw boost::system::system_error(make_error_code(boost::system::errc::invalid_argument), server_name_);
  }
  if (session_ != nullptr) SSL_set_session(stream, session_);
}

int TlsContext::keep_session(SSL* stream, SSL_SESSION* session) {
  auto* owner = static_cast<TlsContext*>(SSL_get_ex_data(stream, owner_index()));
  if (owner == nullptr) return 0;
  if (owner->session_ != nullptr) SSL_SESSION_free(owner->session_);
  owner->session_ = session;
  return 1;  // the reference is ours now
}

std::string TlsContext::explain_refusal(X509_STORE_CTX* store) const {
  const int code = X509_STORE_CTX_get_error(store);
  X509* certificate = X509_STORE_CTX_get_current_cert(store);
  std::string text = "the certificate of " + authority_;
  if (certificate == nullptr) return text + " was refused: " + X509_verify_cert_error_string(code);
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return text + " expired on " + time_text(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return text + " is not valid before " + time_text(X509_get0_notBefore(certificate)) +
             " (is the clock of this machine right?)";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return text + " is for " + alternative_names(certificate) + ", not for " + server_name_;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return text + " is signed by an unknown authority (issuer: " + name_text(X509_get_issuer_name(certificate)) + ")";
    default:
      return text + " was refused: " + X509_verify_cert_error_string(code);
  }
}

}  // namespace hubferry::kube::http
