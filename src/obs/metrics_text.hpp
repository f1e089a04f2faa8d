#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

namespace hubferry::obs {

enum class MetricsFormat { text, open_metrics };

/// A family's name in OpenMetrics: a counter's is without _total, which its samples have.
std::string_view open_metrics_name(std::string_view name, prometheus::MetricType type);

/// Families and their series in a fixed order, so that two scrapes can be compared.
std::string metrics_text(std::vector<prometheus::MetricFamily> families, MetricsFormat format);

}  // namespace hubferry::obs
