#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/secret.hpp"

/// Connections to MySQL and MariaDB servers. The client library is known to one .cpp file only.
namespace hubferry::sql {

using async::Awaitable;
using async::TimePoint;

struct Address {
  std::string host;  // an IP address: looking up a name would block the loop
  std::uint16_t port = 3306;

  bool operator==(const Address&) const = default;
};

struct Credentials {
  std::string user;
  obs::Secret password;
};

enum class ErrorKind {
  unreachable,  // no connection, or it was lost: a statement in flight may have been executed
  timeout,      // no answer before the deadline: likewise
  denied,       // wrong user or password
  refused,      // the server answered with an error: see code
};

struct Error {
  ErrorKind kind = ErrorKind::unreachable;
  unsigned code = 0;    // the server's or the client library's number
  std::string message;  // for people; holds no password

  [[nodiscard]] std::string describe() const;
};

template <typename T = void>
using Result = boost::system::result<T, Error>;

[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

/// One row by column name; nullopt is NULL.
using Row = std::map<std::string, std::optional<std::string>, std::less<>>;
using Rows = std::vector<Row>;

/// The column's text; empty where it is NULL or missing.
std::string text_of(const Row& row, std::string_view column);

/// An open connection: one statement at a time.
/// Cancellation: terminal. After a timeout, a cancellation or a lost connection every further query is `unreachable`.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual Awaitable<Result<Rows>> query(std::string statement, TimePoint deadline) = 0;
};

/// Opens connections. Tests have one that leads to servers in memory.
class Connector {
 public:
  virtual ~Connector() = default;
  virtual Awaitable<Result<std::unique_ptr<Connection>>> connect(Address address, Credentials credentials,
                                                                 TimePoint deadline) = 0;
};

/// Through libmariadb's non-blocking API, on the loop of the caller: no thread per server. Sessions have the same
/// sql_mode and character set on every server. A server is not trusted: the password is never sent as plain text, nor
/// is a file, and a result has an end.
std::unique_ptr<Connector> make_connector(async::Clock& clock);

/// As a string literal of SQL: with quotes, special characters escaped.
std::string quoted(std::string_view text);

}  // namespace hubferry::sql
