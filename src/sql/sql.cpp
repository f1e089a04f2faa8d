#include "hubferry/sql/sql.hpp"

#include <stdexcept>

namespace hubferry::sql {

std::string Error::describe() const {
  switch (kind) {
    case ErrorKind::unreachable:
      return "server unreachable: " + message;
    case ErrorKind::timeout:
      return "no answer in time: " + message;
    case ErrorKind::denied:
      return "access denied: " + message;
    case ErrorKind::refused:
      return "error " + std::to_string(code) + ": " + message;
  }
  return message;
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::runtime_error(error.describe());
}

std::string text_of(const Row& row, std::string_view column) {
  const auto found = row.find(column);
  return found == row.end() ? std::string{} : found->second.value_or(std::string{});
}

std::string quoted(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\0') {
      literal += "\\0";
      continue;
    }
    if (c == '\'' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "'";
}

}  // namespace hubferry::sql
