#include "kube/http/retry_rules.hpp"

#include <algorithm>
#include <charconv>

#include "hubferry/kube/error.hpp"

namespace hubferry::kube::http {

NextStep RetryRules::after(const Attempt& attempt) {
  if (attempt.hopeless) return NextStep::finish;
  return attempt.status != 0 ? after_answer(attempt) : after_loss(attempt);
}

NextStep RetryRules::after_answer(const Attempt& attempt) {
  switch (attempt.status) {
    case 401:
      if (refreshed_) return NextStep::finish;
      refreshed_ = true;
      return NextStep::refresh_and_retry;
    case 429:
    case 503:
      if (attempt.retry_after)
        return *attempt.retry_after <= limits_.max_retry_after ? counted(NextStep::retry_after_server_delay)
                                                               : NextStep::finish;
      // A 429 means that nothing was done; a bare 503 may come from a proxy that does not know.
      if (attempt.status == 429 || read_only_) return counted(NextStep::retry_after_backoff);
      return NextStep::finish;
    default:
      return NextStep::finish;
  }
}

NextStep RetryRules::after_loss(const Attempt& attempt) {
  const bool no_effect = read_only_ || attempt.lost_at == Stage::connecting || attempt.lost_at == Stage::sending;
  if (!no_effect) return NextStep::finish;
  if (attempt.reused_connection && !blamed_reuse_ && attempt.lost_at != Stage::answering) {
    // The usual race with a server that closes idle connections: not a sign of trouble, so neither pause nor count.
    blamed_reuse_ = true;
    return NextStep::retry_now;
  }
  return counted(NextStep::retry_after_backoff);
}

NextStep RetryRules::counted(NextStep step) {
  if (retries_ >= limits_.max_retries) return NextStep::finish;
  ++retries_;
  return step;
}

std::optional<async::Duration> parse_retry_after(std::string_view text) {
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return longest_retry_after;
  return std::min<async::Duration>(std::chrono::seconds{seconds}, longest_retry_after);
}

}  // namespace hubferry::kube::http
