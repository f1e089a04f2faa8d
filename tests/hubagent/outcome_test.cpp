#include "hubferry/hubagent/outcome.hpp"

#include <gtest/gtest.h>

namespace hubferry::hubagent {
namespace {

using kube::ErrorKind;

kube::Error request_error(ErrorKind kind, std::string message) {
  return {kind, 500, "Reason", std::move(message), std::nullopt};
}

// Alerts, scripts and people rely on these.
TEST(FailureReasons, HaveStableNames) {
  const std::pair<FailureReason, std::string_view> names[] = {
      {FailureReason::cluster_not_found, "ClusterNotFound"},
      {FailureReason::cluster_conflict, "ClusterConflict"},
      {FailureReason::cluster_not_available, "ClusterNotAvailable"},
      {FailureReason::cluster_unhealthy, "ClusterUnhealthy"},
      {FailureReason::cluster_attached, "ClusterAttached"},
      {FailureReason::deletion_begun, "DeletionBegun"},
      {FailureReason::works_not_applied, "WorksNotApplied"},
      {FailureReason::cluster_is_local, "ClusterIsLocal"},
      {FailureReason::cluster_is_hosted, "ClusterIsHosted"},
      {FailureReason::cluster_is_hub, "ClusterIsHub"},
      {FailureReason::resource_not_allowed, "ResourceNotAllowed"},
      {FailureReason::resource_invalid, "ResourceInvalid"},
      {FailureReason::resource_differs, "ResourceDiffers"},
      {FailureReason::placement_not_found, "PlacementNotFound"},
      {FailureReason::placement_empty, "PlacementEmpty"},
      {FailureReason::hub_not_found, "HubNotFound"},
      {FailureReason::hub_unreachable, "HubUnreachable"},
      {FailureReason::error, "Error"},
  };
  for (const auto& [reason, name] : names) EXPECT_EQ(to_string(reason), name);
}

TEST(HubError, AFailedRequestKeepsItsKindAndGetsContext) {
  const auto error = Error{request_error(ErrorKind::conflict, "out of date")}.in_context("cannot change Secret a/b");
  EXPECT_TRUE(error.is(ErrorKind::conflict));
  EXPECT_EQ(error.reason(), FailureReason::error);
  EXPECT_EQ(error.message(), "cannot change Secret a/b: out of date");
  EXPECT_EQ(error.describe(), "conflict (500 Reason): cannot change Secret a/b: out of date");
  EXPECT_EQ(Error{request_error(ErrorKind::invalid, "")}.reason(), FailureReason::resource_invalid);
}

TEST(HubError, AnOwnReasonIsNoFailedRequest) {
  const Error error{FailureReason::cluster_conflict, "taken"};
  EXPECT_EQ(error.request(), nullptr);
  EXPECT_FALSE(error.is(ErrorKind::conflict));
  EXPECT_EQ(error.in_context("cannot write").message(), "taken");
  EXPECT_FALSE(concerns_hub(error));
}

TEST(HubError, OnlyWhatMayChangeByItselfOrByARepairMayRecover) {
  EXPECT_TRUE(may_recover(request_error(ErrorKind::unauthorized, "")));
  EXPECT_FALSE(may_recover(request_error(ErrorKind::forbidden, "")));
  EXPECT_TRUE(may_recover(Error{FailureReason::hub_unreachable, ""}));
  EXPECT_TRUE(may_recover(Error{FailureReason::unknown, ""}));
  EXPECT_FALSE(may_recover(Error{FailureReason::hub_not_found, ""}));
  EXPECT_FALSE(may_recover(Error{FailureReason::cluster_conflict, ""}));
}

}  // namespace
}  // namespace hubferry::hubagent
