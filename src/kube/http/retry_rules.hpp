#pragma once

#include <optional>
#include <string_view>

#include "hubferry/async/types.hpp"

namespace hubferry::kube::http {

/// How far an attempt came before it failed.
enum class Stage {
  connecting,  // no byte of the request left
  sending,     // a part of it left. A server does not act on a request whose end is missing
  waiting,     // all of it left, and not a byte of an answer came
  answering,   // the answer broke off
};

/// How one attempt ended: with an answer (a status), or by losing the connection at some stage.
struct Attempt {
  int status = 0;
  std::optional<async::Duration> retry_after;  // what the answer asked for

  Stage lost_at = Stage::connecting;  // without a status
  bool reused_connection = false;     // it came from the pool: the server may have closed it meanwhile
  bool hopeless = false;              // trying again cannot help: a certificate that is not trusted, no time left
};

struct RetryLimits {
  unsigned max_retries = 3;
  async::Duration max_retry_after = std::chrono::seconds{10};
};

enum class NextStep {
  finish,                    // hand the answer, or the failure, to the caller
  retry_now,                 // on a fresh connection
  retry_after_backoff,       // after a pause of our own
  retry_after_server_delay,  // after the server's Retry-After
  refresh_and_retry,         // the credential was refused: get a new one
};

/// Decides what follows an attempt; no I/O. One per call.
///
/// A read may always be repeated. A write only when it cannot have had an effect: it was not sent in full, or the
/// server refused it before doing anything (401, 429, 503 with Retry-After).
class RetryRules {
 public:
  RetryRules(RetryLimits limits, bool read_only) : limits_(limits), read_only_(read_only) {}

  NextStep after(const Attempt& attempt);
  [[nodiscard]] unsigned retries() const { return retries_; }

 private:
  NextStep after_answer(const Attempt& attempt);
  NextStep after_loss(const Attempt& attempt);
  /// `step` while there are retries left.
  NextStep counted(NextStep step);

  RetryLimits limits_;
  bool read_only_;
  bool refreshed_ = false;
  bool blamed_reuse_ = false;
  unsigned retries_ = 0;
};

/// Seconds, up to longest_retry_after; the form with a date is not used by Kubernetes and counts as absent.
std::optional<async::Duration> parse_retry_after(std::string_view text);

}  // namespace hubferry::kube::http
