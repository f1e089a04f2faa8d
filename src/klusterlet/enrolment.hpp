#pragma once

#include <functional>

#include "hubferry/async/backoff.hpp"
#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

/// What a CertificateSigningRequest amounts to for the one who made it.
enum class RequestState {
  waiting,   // not approved, denied (until somebody deletes it), or approved and not yet signed
  issued,    // the certificate is there and belongs to our key
  mismatch,  // a certificate is there, for another key
  lost,      // it is gone, or the signer gave it up: only a new one helps
};
struct RequestAnswer {
  RequestState state = RequestState::waiting;
  std::string certificate;  // when issued
};
/// `request` is null when there is none any more.
RequestAnswer answer_of(const kube::Object* request, const std::string& public_key);

/// How often a hub that fails is asked again while a cluster joins it.
inline constexpr async::BackoffPolicy registration_retry{.first = std::chrono::seconds{1},
                                                         .most = std::chrono::seconds{60}};

/// Hubs collect old requests by themselves; while there are this many of ours, another one helps nobody.
inline constexpr std::size_t most_requests = 10;

struct EnrolmentOptions {
  Identity identity;
  std::chrono::seconds lifetime{0};  // zero: the hub decides
  /// Told what happens, by the reasons that Open Cluster Management uses.
  std::function<void(std::string_view reason, const std::string& note)> tell;
};

struct Enrolled {
  std::string certificate;
  obs::Secret key;
};

/// Obtains a certificate: asks, and waits for approval and signature, however long that takes. The state of a request
/// lives in here only; a lost one is made again, with a fresh key.
/// Cancellation: terminal; the request stays on the hub.
async::Awaitable<Enrolled> enrol(kube::Api& api, EnrolmentOptions options, const kube::Env& env);

}  // namespace hubferry::klusterlet
