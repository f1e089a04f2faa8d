#pragma once

#include <functional>

#include "hubferry/async/backoff.hpp"
#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

/// The state of a CertificateSigningRequest, for its requester.
enum class RequestState {
  waiting,   // not approved yet, denied (until it is deleted; reported), or approved and not signed yet
  issued,    // there is a certificate for our key
  mismatch,  // there is a certificate for another key
  lost,      // it was deleted, or the signer failed: a new one is needed
};
struct RequestAnswer {
  RequestState state = RequestState::waiting;
  std::string certificate;  // when issued
};
/// `request` is null if it no longer exists.
RequestAnswer answer_of(const kube::Object* request, const std::string& public_key, KeySource& keys = fresh_keys());

/// Backoff of requests to a hub while a cluster registers.
inline constexpr async::BackoffPolicy registration_retry{.first = std::chrono::seconds{1},
                                                         .most = std::chrono::seconds{60}};

/// Hubs garbage-collect old requests; while there are this many of ours, no further one is created.
inline constexpr std::size_t most_requests = 10;

struct EnrolmentOptions {
  Identity identity;
  KeySource* keys = &fresh_keys();
  std::chrono::seconds lifetime{0};  // zero: the hub decides
  /// Count the requests on the hub before the first one is created, too. A whole fleet that switches saves that.
  bool count_first = true;
  /// Called for each event, with the reasons that Open Cluster Management uses.
  std::function<void(std::string_view reason, const std::string& message)> report;
  /// Called for each request to the hub that failed, with what it was for. It is retried.
  std::function<void(const std::string& what, const kube::Error& error)> failed;
};

struct Enrolled {
  std::string certificate;
  obs::Secret key;
};

/// Obtains a certificate: creates a request and waits for approval and signature, without a timeout. The request is
/// remembered nowhere else; a lost one is replaced, with a fresh key.
/// Cancellation: terminal; the request stays on the hub.
async::Awaitable<Enrolled> enrol(kube::Api& api, EnrolmentOptions options, const kube::Env& env);

}  // namespace hubferry::klusterlet
