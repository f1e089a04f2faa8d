#include "hubferry/phase/error.hpp"

#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <new>
#include <stdexcept>

namespace hubferry::phase::test {
namespace {

namespace error = async::asio::error;

template <typename Exception>
ErrorKind kind_of(Exception exception) {
  return Error::from_exception(std::make_exception_ptr(std::move(exception))).kind;
}

boost::system::system_error system_error(boost::system::error_code code) {
  return boost::system::system_error{code};
}

TEST(PhaseError, NetworkErrorsAreTransient) {
  const boost::system::error_code passing[] = {error::timed_out,
                                               error::connection_refused,
                                               error::connection_reset,
                                               error::broken_pipe,
                                               error::host_unreachable,
                                               error::network_unreachable,
                                               error::eof,
                                               error::host_not_found,
                                               error::host_not_found_try_again,
                                               error::operation_aborted};
  for (const auto& code : passing) EXPECT_EQ(kind_of(system_error(code)), ErrorKind::network) << code.message();
  EXPECT_EQ(kind_of(std::system_error{std::make_error_code(std::errc::connection_reset)}), ErrorKind::network);
}

// Endless retries would hide them.
TEST(PhaseError, OtherErrorsAreNotNetworkErrors) {
  const boost::system::error_code lasting[] = {error::no_memory,
                                               error::no_descriptors,
                                               error::access_denied,
                                               error::invalid_argument,
                                               error::already_open,
                                               error::service_not_found,
                                               {ENOENT, boost::system::system_category()},
                                               {ENOSPC, boost::system::generic_category()}};
  for (const auto& code : lasting) EXPECT_EQ(kind_of(system_error(code)), ErrorKind::other) << code.message();
  EXPECT_EQ(kind_of(std::system_error{std::make_error_code(std::errc::no_such_file_or_directory)}), ErrorKind::other);
  EXPECT_EQ(kind_of(std::bad_alloc{}), ErrorKind::other);
  EXPECT_EQ(kind_of(std::logic_error{"a bug"}), ErrorKind::other);
}

}  // namespace
}  // namespace hubferry::phase::test
