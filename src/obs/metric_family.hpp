#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hubferry/obs/metrics.hpp"

namespace hubferry::obs {

/// The shape by which two requests for one metric are compared.
struct MetricShape {
  std::string name;
  prometheus::MetricType type;
  std::vector<std::string> label_names;
  std::vector<double> buckets;

  bool operator==(const MetricShape&) const = default;
};

template <typename T>
class Family<T>::Impl {
 public:
  Impl(MetricShape shape, std::size_t max_series, prometheus::Family<typename T::Series>& family)
      : shape_(std::move(shape)), max_series_(max_series), family_(family) {}

  T& with(std::initializer_list<std::string_view> values);
  std::size_t series() const;

 private:
  /// So that a lookup needs no string of its own.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  T* find(std::string_view key);
  T& add(const std::string& key, const std::vector<std::string>& values);

  const MetricShape shape_;
  const std::size_t max_series_;
  prometheus::Family<typename T::Series>& family_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, T, Hash, std::equal_to<>> by_values_;  // its elements stay where they are
  T* other_ = nullptr;
};

extern template class Family<Counter>;
extern template class Family<Gauge>;
extern template class Family<Histogram>;

enum class MetricsFormat { text, open_metrics };

/// A family's name in OpenMetrics: a counter's is without _total, which its samples have.
std::string_view open_metrics_name(std::string_view name, prometheus::MetricType type);

/// Families and their series in a fixed order, so that two scrapes can be compared.
std::string metrics_text(std::vector<prometheus::MetricFamily> families, MetricsFormat format);

}  // namespace hubferry::obs
