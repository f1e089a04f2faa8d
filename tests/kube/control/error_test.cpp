#include "hubferry/kube/error.hpp"

#include <gtest/gtest.h>

namespace hubferry::kube {
namespace {

using namespace std::chrono_literals;

TEST(KubeError, RetryAfterIsBounded) {
  const auto asked = [](const std::string& seconds) {
    return error_from_status(429, R"({"kind":"Status","details":{"retryAfterSeconds":)" + seconds + "}}").retry_after;
  };
  EXPECT_EQ(asked("7"), 7s);
  EXPECT_EQ(asked("0"), std::nullopt);
  EXPECT_EQ(asked("-3"), std::nullopt);
  EXPECT_EQ(asked("86400"), longest_retry_after);
  EXPECT_EQ(asked("9223372036854775807"), longest_retry_after);
}

TEST(KubeError, OnlyRetryAfterMeansThatAWriteDidNotHappen) {
  for (const int status : {500, 502, 503, 504, 599}) {
    const auto error = error_from_status(status, "{}");
    EXPECT_EQ(error.kind, ErrorKind::retry_later) << status;
    EXPECT_EQ(as_answer_to_write(error).kind, ErrorKind::ambiguous) << status;
  }
  const std::string later = R"({"kind":"Status","details":{"retryAfterSeconds":1}})";
  EXPECT_EQ(as_answer_to_write(error_from_status(503, later)).kind, ErrorKind::retry_later);
  EXPECT_EQ(as_answer_to_write(error_from_status(429, "{}")).kind, ErrorKind::retry_later);
  EXPECT_EQ(as_answer_to_write(error_from_status(500, later)).kind, ErrorKind::ambiguous);
  EXPECT_EQ(as_answer_to_write(error_from_status(409, "{}")).kind, ErrorKind::conflict);
}

TEST(KubeError, ADenialByAdmissionIsDistinguishedFromMissingPermissions) {
  const auto denied = [](int status, const std::string& rest) {
    return error_from_status(status, R"({"kind":"Status","reason":"Forbidden",)" + rest + "}").denied_by_admission;
  };
  EXPECT_TRUE(denied(403, R"("message":"admission webhook \"a.example\" denied the request: no")"));
  EXPECT_TRUE(denied(403, R"("message":"secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request")"));
  EXPECT_TRUE(denied(403, R"("message":"no","details":{"causes":[{"reason":"NamespaceTerminating"}]})"));
  EXPECT_FALSE(denied(403, R"("message":"secrets is forbidden: User \"u\" cannot create resource")"));
  EXPECT_FALSE(denied(422, R"("message":"admission webhook \"a.example\" denied the request: no")"));
}

TEST(KubeError, WhetherARetryMaySucceedDependsOnlyOnTheKind) {
  struct Row {
    ErrorKind kind;
    bool transient, recoverable;
  };
  const Row table[] = {
      {ErrorKind::retry_later, true, true},      {ErrorKind::unreachable, true, true},
      {ErrorKind::conflict, true, true},         {ErrorKind::gone, true, true},
      {ErrorKind::ambiguous, true, true},        {ErrorKind::unauthorized, false, true},
      {ErrorKind::bad_response, false, true},    {ErrorKind::not_found, false, false},
      {ErrorKind::already_exists, false, false}, {ErrorKind::invalid, false, false},
      {ErrorKind::forbidden, false, false},      {ErrorKind::unsupported, false, false},
  };
  for (const auto& row : table) {
    EXPECT_EQ(is_transient(row.kind), row.transient) << to_string(row.kind);
    EXPECT_EQ(may_recover(row.kind), row.recoverable) << to_string(row.kind);
  }
}

}  // namespace
}  // namespace hubferry::kube
