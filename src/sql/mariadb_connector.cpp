// The only file that knows libmariadb. Its non-blocking functions run until they need the socket and say what they
// wait for; the coroutine waits for that on Asio's loop and continues them.
#include <mysql.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <mutex>

#include "hubferry/async/deadline.hpp"
#include "hubferry/sql/sql.hpp"

namespace hubferry::sql {

namespace {

namespace asio = async::asio;

constexpr unsigned lost_codes[] = {2000, 2001, 2002, 2003, 2004, 2005, 2006, 2012,
                                   2013, 2014, 2020, 2026, 2027, 2055, 1053, 1927};
constexpr unsigned denied_codes[] = {1044, 1045, 1698, 1130};

// The largest result that is asked for is the list of all connections: some MiB, with a hundred thousand of them.
constexpr std::size_t largest_result = 64 * 1024 * 1024;
constexpr std::size_t least_value = 32;  // what one takes in memory, also if it is empty
// Plugins that prove to know the password without sending it. An address may be another server's by now, and the
// library would load whichever plugin that one asks for: some send the password as plain text.
constexpr const char* authentication = "mysql_native_password,client_ed25519";

Error error_of(MYSQL& handle) {
  Error error{ErrorKind::refused, mysql_errno(&handle), mysql_error(&handle)};
  // It becomes part of logs, events and the status, which are text.
  std::ranges::replace_if(error.message, [](char c) { return c < ' ' || c > '~'; }, '?');
  if (std::ranges::find(lost_codes, error.code) != std::end(lost_codes)) error.kind = ErrorKind::unreachable;
  if (std::ranges::find(denied_codes, error.code) != std::end(denied_codes)) error.kind = ErrorKind::denied;
  return error;
}

/// A descriptor that stays the library's: released, not closed.
struct Borrowed {
  Borrowed(const async::Executor& executor, int number) : descriptor(executor, number) {}
  ~Borrowed() { descriptor.release(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  asio::posix::stream_descriptor descriptor;
};

/// Waits until the socket is ready for what the library waits for, and says what happened.
Awaitable<int> wait_for_socket(MYSQL& handle, int status) {
  Borrowed borrowed{co_await asio::this_coro::executor, static_cast<int>(mysql_get_socket(&handle))};
  // Reading and writing at once are waited for by the library only while it connects: writability ends that.
  const bool writing = (status & MYSQL_WAIT_WRITE) != 0;
  const auto what = writing ? asio::posix::descriptor_base::wait_write : asio::posix::descriptor_base::wait_read;
  co_await borrowed.descriptor.async_wait(what, asio::use_awaitable);
  co_return writing ? MYSQL_WAIT_WRITE : MYSQL_WAIT_READ;
}

/// Drives one operation of the library to its end. If this coroutine is cancelled meanwhile, the library's own stack is
/// unwound by reporting timeouts to it.
template <typename Continue>
Awaitable<> drive(MYSQL& handle, int status, Continue proceed) {
  struct Unwind {
    int& status;
    Continue& proceed;
    ~Unwind() {
      for (int turn = 0; status != 0 && turn < 100; ++turn) status = proceed(MYSQL_WAIT_TIMEOUT);
    }
  } unwind{status, proceed};
  while (status != 0) {
    const int ready = co_await wait_for_socket(handle, status);
    status = proceed(ready);
  }
}

class MariadbConnection final : public Connection {
 public:
  explicit MariadbConnection(async::Clock& clock) : clock_(clock) {
    static std::once_flag once;
    std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
    mysql_init(&handle_);
    mysql_options(&handle_, MYSQL_OPT_NONBLOCK, nullptr);
    // Deadlines are ours; this one ends an operation that the library itself would wait for.
    const unsigned seconds = 60;
    mysql_options(&handle_, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(&handle_, MARIADB_OPT_RESTRICTED_AUTH, authentication);
    // No statement of ours sends a file, so no server gets one.
    const unsigned none = 0;
    mysql_options(&handle_, MYSQL_OPT_LOCAL_INFILE, &none);
    const unsigned long largest = largest_result;
    mysql_options(&handle_, MYSQL_OPT_MAX_ALLOWED_PACKET, &largest);
    // Whatever the server's defaults are: with NO_BACKSLASH_ESCAPES, or in a character set in which a backslash may be
    // half of a character, the literals of quoted() would end early.
    mysql_options(&handle_, MYSQL_INIT_COMMAND, "SET NAMES utf8mb4, SESSION sql_mode='STRICT_ALL_TABLES'");
  }
  MariadbConnection(const MariadbConnection&) = delete;
  MariadbConnection& operator=(const MariadbConnection&) = delete;
  ~MariadbConnection() override { mysql_close(&handle_); }

  Awaitable<Result<>> open(const Address& address, const Credentials& credentials, TimePoint deadline) {
    async::error_code is_name;
    asio::ip::make_address(address.host, is_name);
    if (is_name) co_return Error{ErrorKind::unreachable, 0, "not an IP address: " + address.host};
    auto opened = co_await async::before_deadline(clock_, deadline, connect(address, credentials));
    broken_ = !opened || opened->has_error();
    if (!opened) co_return Error{ErrorKind::timeout, 0, "connecting to " + address.host};
    co_return *opened;
  }

  Awaitable<Result<Rows>> query(std::string statement, TimePoint deadline) override {
    if (broken_) co_return Error{ErrorKind::unreachable, 0, "the connection was lost before"};
    broken_ = true;  // also if this coroutine is cancelled
    auto answer = co_await async::before_deadline(clock_, deadline, run(statement));
    if (!answer) co_return Error{ErrorKind::timeout, 0, "waiting for the result of a statement"};
    broken_ = answer->has_error() && answer->error().kind == ErrorKind::unreachable;
    co_return std::move(*answer);
  }

 private:
  Awaitable<Result<>> connect(const Address& address, const Credentials& credentials) {
    MYSQL* connected = nullptr;
    const int status =
        mysql_real_connect_start(&connected, &handle_, address.host.c_str(), credentials.user.c_str(),
                                 credentials.password.reveal().c_str(), nullptr, address.port, nullptr, 0);
    const auto proceed = [&](int ready) { return mysql_real_connect_cont(&connected, &handle_, ready); };
    co_await drive(handle_, status, proceed);
    if (connected == nullptr) co_return error_of(handle_);
    co_return Result<>{};
  }

  Awaitable<Result<Rows>> run(const std::string& statement) {
    int failed = 0;
    const int status = mysql_real_query_start(&failed, &handle_, statement.data(), statement.size());
    const auto proceed = [&](int ready) { return mysql_real_query_cont(&failed, &handle_, ready); };
    co_await drive(handle_, status, proceed);
    if (failed != 0) co_return error_of(handle_);
    if (mysql_field_count(&handle_) == 0) co_return Rows{};
    co_return co_await fetch();
  }

  /// Row by row: the library would keep whatever comes.
  Awaitable<Result<Rows>> fetch() {
    MYSQL_RES* result = mysql_use_result(&handle_);
    if (result == nullptr) co_return error_of(handle_);
    bool has_ended = false;
    const auto release = [&](MYSQL_RES* of) {
      // Otherwise the library reads the rest, and blocks the loop meanwhile.
      if (!has_ended) ::shutdown(static_cast<int>(mysql_get_socket(&handle_)), SHUT_RDWR);
      mysql_free_result(of);
    };
    const std::unique_ptr<MYSQL_RES, decltype(release)> kept{result, release};
    const unsigned columns = mysql_num_fields(result);
    const auto* fields = mysql_fetch_fields(result);
    Rows rows;
    std::size_t size = 0;
    for (;;) {
      MYSQL_ROW values = nullptr;
      const int status = mysql_fetch_row_start(&values, result);
      const auto proceed = [&](int ready) { return mysql_fetch_row_cont(&values, result, ready); };
      co_await drive(handle_, status, proceed);
      if (values == nullptr) break;
      const auto* lengths = mysql_fetch_lengths(result);
      auto& row = rows.emplace_back();
      for (unsigned at = 0; at < columns; ++at) {
        size += least_value + lengths[at];
        row.emplace(fields[at].name,
                    values[at] == nullptr ? std::nullopt : std::optional{std::string{values[at], lengths[at]}});
      }
      if (size > largest_result) co_return Error{ErrorKind::unreachable, 0, "the result is too large"};
    }
    if (mysql_errno(&handle_) != 0) co_return error_of(handle_);
    has_ended = true;
    co_return rows;
  }

  async::Clock& clock_;
  MYSQL handle_{};
  bool broken_ = true;
};

class MariadbConnector final : public Connector {
 public:
  explicit MariadbConnector(async::Clock& clock) : clock_(clock) {}

  Awaitable<Result<std::unique_ptr<Connection>>> connect(Address address, Credentials credentials,
                                                         TimePoint deadline) override {
    auto connection = std::make_unique<MariadbConnection>(clock_);
    auto opened = co_await connection->open(address, credentials, deadline);
    if (!opened) co_return opened.error();
    co_return std::unique_ptr<Connection>{std::move(connection)};
  }

 private:
  async::Clock& clock_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(async::Clock& clock) {
  return std::make_unique<MariadbConnector>(clock);
}

}  // namespace hubferry::sql
