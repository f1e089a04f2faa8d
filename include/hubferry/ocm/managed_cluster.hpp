#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "hubferry/kube/projection.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::ocm {

/// cluster.open-cluster-management.io/v1.
extern const kube::Resource managed_clusters;

enum class ConditionStatus : std::uint8_t { unknown, is_true, is_false };

/// metav1.Condition without its message: code that needs the message reads the object.
struct ConditionView {
  std::string_view type;
  ConditionStatus status = ConditionStatus::unknown;
  std::string_view reason;
  async::WallTime last_transition{};
};

/// A ManagedCluster as the caches keep it: the fields that we use, in a few hundred bytes.
///
/// Left out: managedFields, status besides the conditions, and annotations of domains other than
/// open-cluster-management.io and hubferry.io. Label and annotation keys, condition types and reasons are kept once
/// for all clusters (StringPool), everything else lies in one buffer. Immutable: share it between loops.
class ManagedCluster {
 public:
  struct Draft;

  explicit ManagedCluster(const Draft& draft);

  [[nodiscard]] std::string_view name() const { return text(name_); }
  [[nodiscard]] std::string_view uid() const { return text(uid_); }
  [[nodiscard]] std::string_view resource_version() const { return text(resource_version_); }
  [[nodiscard]] std::int64_t generation() const { return generation_; }
  [[nodiscard]] std::optional<async::WallTime> deletion_time() const;
  [[nodiscard]] bool is_being_deleted() const { return deletion_seconds_ != 0; }

  [[nodiscard]] bool hub_accepts_client() const { return hub_accepts_client_; }
  /// 0 when unset; OCM then takes 60.
  [[nodiscard]] std::int32_t lease_duration_seconds() const { return lease_duration_seconds_; }
  /// The first of spec.managedClusterClientConfigs; empty when there is none.
  [[nodiscard]] std::string_view client_url() const { return text(client_url_); }

  [[nodiscard]] std::optional<std::string_view> label(std::string_view key) const;
  [[nodiscard]] std::optional<std::string_view> annotation(std::string_view key) const;
  [[nodiscard]] bool has_finalizer(std::string_view finalizer) const;
  [[nodiscard]] std::optional<ConditionView> condition(std::string_view type) const;
  /// True when the condition exists and its status is "True".
  [[nodiscard]] bool is_true(std::string_view type) const;

  template <typename Visit>
  void for_each_label(Visit visit) const {
    for (std::uint16_t i = 0; i < labels_; ++i) visit(text(pair(i).key), text(pair(i).value));
  }
  template <typename Visit>
  void for_each_condition(Visit visit) const {
    for (std::uint16_t i = 0; i < conditions_; ++i) visit(condition_at(i));
  }

 private:
  class Packer;

  /// A number in the string pool (highest bit set), or the offset of length and bytes in the buffer.
  using Reference = std::uint32_t;
  struct Pair {
    Reference key;
    Reference value;
  };
  struct PackedCondition {
    Reference type;
    Reference reason;
    std::int32_t status;
    std::uint32_t since;  // seconds since 1970
  };

  [[nodiscard]] std::string_view text(Reference reference) const;
  [[nodiscard]] Pair pair(std::size_t index) const;
  [[nodiscard]] ConditionView condition_at(std::size_t index) const;
  [[nodiscard]] std::optional<std::string_view> find(std::size_t first, std::size_t count, std::string_view key) const;
  [[nodiscard]] std::size_t conditions_offset() const;
  [[nodiscard]] std::size_t finalizers_offset() const;

  // Labels, then annotations, as Pair; conditions; finalizers as Reference; then the bytes of all strings.
  std::unique_ptr<char[]> buffer_;
  Reference name_ = 0;
  Reference uid_ = 0;
  Reference resource_version_ = 0;
  Reference client_url_ = 0;
  std::int32_t lease_duration_seconds_ = 0;
  std::int64_t generation_ = 0;
  std::int64_t deletion_seconds_ = 0;
  std::uint16_t labels_ = 0;
  std::uint16_t annotations_ = 0;
  std::uint16_t conditions_ = 0;
  std::uint16_t finalizers_ = 0;
  bool hub_accepts_client_ = false;
};

/// What the decoder fills: views into the bytes being decoded. Gone as soon as the ManagedCluster is built.
struct ManagedCluster::Draft : kube::Projected {
  struct Pair {
    std::string_view key;
    std::string_view value;
  };
  struct Client {
    std::string_view url;
  };

  std::string_view uid;
  std::int64_t generation = 0;
  std::optional<async::WallTime> deletion_time;
  bool hub_accepts_client = false;
  std::int64_t lease_duration_seconds = 0;
  boost::container::small_vector<Pair, 24> labels;
  boost::container::small_vector<Pair, 8> annotations;
  boost::container::small_vector<ConditionView, 8> conditions;
  boost::container::small_vector<std::string_view, 8> finalizers;
  boost::container::small_vector<Client, 2> clients;
};

/// Stateless; the type of its objects is ManagedCluster.
const kube::Decoder& managed_cluster_decoder();

}  // namespace hubferry::ocm
