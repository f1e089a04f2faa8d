#include "hubferry/ocm/managed_cluster.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "hubferry/kube/string_pool.hpp"

namespace hubferry::ocm {

const kube::Resource managed_clusters{"cluster.open-cluster-management.io", "v1", "managedclusters", "ManagedCluster",
                                      false};

namespace {

using kube::StringPool;

constexpr std::uint32_t in_pool = 0x8000'0000;

template <typename T>
T read_at(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::int64_t whole_seconds(async::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

template <typename Narrow>
Narrow clamped(std::int64_t value) {
  return static_cast<Narrow>(
      std::clamp<std::int64_t>(value, std::numeric_limits<Narrow>::min(), std::numeric_limits<Narrow>::max()));
}

/// Other annotations (above all kubectl's last-applied-configuration) are large and of no use here.
bool is_annotation_of_use(std::string_view key) {
  const auto domain = key.substr(0, key.find('/'));
  return domain.ends_with("open-cluster-management.io") || domain.ends_with("hubferry.io");
}

ConditionStatus status_from(std::string_view text) {
  if (text == "True") return ConditionStatus::is_true;
  if (text == "False") return ConditionStatus::is_false;
  return ConditionStatus::unknown;
}

using Draft = ManagedCluster::Draft;

kube::Schema<ConditionView> condition_schema() {
  kube::Schema<ConditionView> schema;
  schema.text({"type"}, &ConditionView::type)
      .text({"status"}, [](ConditionView& to, std::string_view text) { to.status = status_from(text); })
      .text({"reason"}, &ConditionView::reason)
      .time({"lastTransitionTime"}, &ConditionView::last_transition);
  return schema;
}

kube::Schema<Draft> draft_schema() {
  kube::Schema<Draft::Client> client;
  client.text({"url"}, &Draft::Client::url);

  kube::Schema<Draft> schema;
  schema.text({"metadata", "uid"}, &Draft::uid)
      .integer({"metadata", "generation"}, &Draft::generation)
      .time({"metadata", "deletionTimestamp"}, &Draft::deletion_time)
      .text_map({"metadata", "labels"},
                [](Draft& to, std::string_view key, std::string_view value) { to.labels.push_back({key, value}); })
      .text_map({"metadata", "annotations"},
                [](Draft& to, std::string_view key, std::string_view value) {
                  if (is_annotation_of_use(key)) to.annotations.push_back({key, value});
                })
      .texts({"metadata", "finalizers"}, [](Draft& to, std::string_view text) { to.finalizers.push_back(text); })
      .boolean({"spec", "hubAcceptsClient"}, &Draft::hub_accepts_client)
      .integer({"spec", "leaseDurationSeconds"}, &Draft::lease_duration_seconds)
      .objects({"spec", "managedClusterClientConfigs"}, &Draft::clients, client)
      .objects({"status", "conditions"}, &Draft::conditions, condition_schema());
  return schema;
}

/// More of one kind than an object can have on an API server (1.5 MiB); garbage is cut there.
template <typename List>
std::uint16_t count_of(const List& list) {
  return static_cast<std::uint16_t>(std::min<std::size_t>(list.size(), 0xffff));
}

}  // namespace

/// Lays everything out twice: first to measure, then into a buffer of exactly that size.
class ManagedCluster::Packer {
 public:
  Packer(char* buffer, std::size_t fixed) : buffer_(buffer), end_(fixed) {}

  [[nodiscard]] std::size_t size() const { return end_; }

  Reference shared(std::string_view text) {
    if (const auto number = StringPool::intern(text)) return *number | in_pool;
    return own(text);
  }

  Reference own(std::string_view text) {
    if (text.empty()) return StringPool::empty | in_pool;
    const auto length = static_cast<std::uint32_t>(text.size());
    const std::size_t begin = end_;
    end_ += sizeof length + length;
    if (buffer_ != nullptr) {
      std::memcpy(buffer_ + begin, &length, sizeof length);
      std::memcpy(buffer_ + begin + sizeof length, text.data(), length);
    }
    return static_cast<Reference>(begin);
  }

  template <typename T>
  void put(const T& value) {
    if (buffer_ != nullptr) std::memcpy(buffer_ + fixed_, &value, sizeof value);
    fixed_ += sizeof value;
  }

 private:
  char* buffer_;
  std::size_t fixed_ = 0;  // where the next record of fixed size goes
  std::size_t end_;        // where the next string goes
};

ManagedCluster::ManagedCluster(const Draft& draft)
    : lease_duration_seconds_(clamped<std::int32_t>(draft.lease_duration_seconds)),
      generation_(draft.generation),
      deletion_seconds_(draft.deletion_time ? whole_seconds(*draft.deletion_time) : 0),
      labels_(count_of(draft.labels)),
      annotations_(count_of(draft.annotations)),
      conditions_(count_of(draft.conditions)),
      finalizers_(count_of(draft.finalizers)),
      hub_accepts_client_(draft.hub_accepts_client) {
  const std::size_t fixed = finalizers_offset() + finalizers_ * sizeof(Reference);
  const auto pack = [&](Packer& packer) {
    for (std::size_t i = 0; i < labels_; ++i)
      packer.put(Pair{packer.shared(draft.labels[i].key), packer.own(draft.labels[i].value)});
    for (std::size_t i = 0; i < annotations_; ++i)
      packer.put(Pair{packer.shared(draft.annotations[i].key), packer.own(draft.annotations[i].value)});
    for (std::size_t i = 0; i < conditions_; ++i) {
      const auto& condition = draft.conditions[i];
      packer.put(PackedCondition{packer.shared(condition.type), packer.shared(condition.reason),
                                 static_cast<std::int32_t>(condition.status),
                                 clamped<std::uint32_t>(whole_seconds(condition.last_transition))});
    }
    for (std::size_t i = 0; i < finalizers_; ++i) packer.put(packer.shared(draft.finalizers[i]));
    name_ = packer.own(draft.key.name);
    uid_ = packer.own(draft.uid);
    resource_version_ = packer.own(draft.resource_version);
    client_url_ = packer.own(draft.clients.empty() ? std::string_view{} : draft.clients.front().url);
  };
  Packer measure{nullptr, fixed};
  pack(measure);
  buffer_ = std::make_unique_for_overwrite<char[]>(measure.size());
  Packer fill{buffer_.get(), fixed};
  pack(fill);
}

std::string_view ManagedCluster::text(Reference reference) const {
  if ((reference & in_pool) != 0) return StringPool::text(reference & ~in_pool);
  const char* at = buffer_.get() + reference;
  return {at + sizeof(std::uint32_t), read_at<std::uint32_t>(at)};
}

ManagedCluster::Pair ManagedCluster::pair(std::size_t index) const {
  return read_at<Pair>(buffer_.get() + index * sizeof(Pair));
}

std::size_t ManagedCluster::conditions_offset() const {
  return (std::size_t{labels_} + annotations_) * sizeof(Pair);
}

std::size_t ManagedCluster::finalizers_offset() const {
  return conditions_offset() + conditions_ * sizeof(PackedCondition);
}

ConditionView ManagedCluster::condition_at(std::size_t index) const {
  const auto packed = read_at<PackedCondition>(buffer_.get() + conditions_offset() + index * sizeof(PackedCondition));
  return {text(packed.type), static_cast<ConditionStatus>(packed.status), text(packed.reason),
          async::WallTime{std::chrono::seconds{packed.since}}};
}

std::optional<std::string_view> ManagedCluster::find(std::size_t first, std::size_t count, std::string_view key) const {
  for (std::size_t i = first; i < first + count; ++i)
    if (text(pair(i).key) == key) return text(pair(i).value);
  return std::nullopt;
}

std::optional<async::WallTime> ManagedCluster::deletion_time() const {
  if (deletion_seconds_ == 0) return std::nullopt;
  return async::WallTime{std::chrono::seconds{deletion_seconds_}};
}

std::optional<std::string_view> ManagedCluster::label(std::string_view key) const {
  return find(0, labels_, key);
}

std::optional<std::string_view> ManagedCluster::annotation(std::string_view key) const {
  return find(labels_, annotations_, key);
}

bool ManagedCluster::has_finalizer(std::string_view finalizer) const {
  for (std::size_t i = 0; i < finalizers_; ++i)
    if (text(read_at<Reference>(buffer_.get() + finalizers_offset() + i * sizeof(Reference))) == finalizer) return true;
  return false;
}

std::optional<ConditionView> ManagedCluster::condition(std::string_view type) const {
  for (std::size_t i = 0; i < conditions_; ++i)
    if (auto found = condition_at(i); found.type == type) return found;
  return std::nullopt;
}

bool ManagedCluster::is_true(std::string_view type) const {
  const auto found = condition(type);
  return found && found->status == ConditionStatus::is_true;
}

const kube::Decoder& managed_cluster_decoder() {
  static const kube::ProjectionDecoder<ManagedCluster> decoder{draft_schema()};
  return decoder;
}

}  // namespace hubferry::ocm
