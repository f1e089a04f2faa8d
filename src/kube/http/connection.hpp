#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kube/http/retry_rules.hpp"
#include "kube/http/transport.hpp"

namespace hubferry::kube::http {

/// A server's response, as far as it was read.
struct Answer {
  int status = 0;
  std::string content_type;
  bool gzip = false;
  std::optional<async::Duration> retry_after;
  std::string body;
};

/// Why an exchange failed.
struct Loss {
  Stage stage = Stage::waiting;
  std::string why;
  bool out_of_time = false;
  bool garbage = false;  // what came is no HTTP, or too much of it
  bool refused = false;  // the server rejected our certificate: it has not looked at the request
};

/// HTTP/1.1 over one transport, one request at a time.
///
/// Executor: the transport's loop. Lifetime: held by shared_ptr, for its timer's sake.
/// Cancellation: terminal, thrown; the connection must not be used again then, nor after a Loss.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<Transport> transport, async::Executor loop, async::Clock& clock);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// Sends `request` (head and body) and reads the head of the answer into `answer`. `body_limit` 0: none.
  Awaitable<std::optional<Loss>> begin(std::string_view request, std::size_t body_limit, TimePoint deadline,
                                       Answer& answer);
  /// Replaces `chunk` with the available part of the body, waiting for at least one byte. Empty at the end.
  Awaitable<std::optional<Loss>> read_body(TimePoint deadline, std::string& chunk);
  /// Reads all the rest of the body into `body`. With a `progress_limit`, each byte received extends the deadline to
  /// that much later; ten times that in all.
  Awaitable<std::optional<Loss>> finish(TimePoint deadline, async::Duration progress_limit, std::string& body);

  /// True after a whole answer when the server keeps the connection, and has sent nothing else.
  [[nodiscard]] bool reusable() const;
  /// Parks it between requests. `on_expired` is called once if it is still unused at `deadline`.
  void park(TimePoint deadline, std::function<void()> on_expired);
  /// Takes it into use again; false when the server has closed it meanwhile.
  bool unpark();
  void close() noexcept;

 private:
  struct Parsing;

  /// Reads from the transport and lets the parser have it.
  Awaitable<std::optional<Loss>> read_more();
  Loss lost(Stage stage, error_code error) const;
  void limit_time(TimePoint deadline);
  void arm_timer();
  void time_is_up();

  std::unique_ptr<Transport> transport_;
  async::Clock& clock_;
  /// The timeout of the operation in flight. It is seldom touched: a deadline that moves into the future leaves it as
  /// it is, and it looks again when it fires.
  asio::steady_timer timer_;
  TimePoint deadline_ = async::never;
  TimePoint timer_fires_ = async::never;
  bool out_of_time_ = false;
  std::function<void()> on_expired_;
  std::unique_ptr<Parsing> parsing_;
};

}  // namespace hubferry::kube::http
