#include "obs/metric_family.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "hubferry/obs/metrics_page.hpp"
#include "obs/http_message.hpp"

namespace hubferry::obs {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Summary:
      return "summary";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Untyped:
      break;
  }
  return "unknown";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  const auto [end, ec] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out += c;
  }
}

/// Writes the samples of one family.
class FamilyText {
 public:
  FamilyText(std::string& out, const MetricFamily& family, MetricsFormat format)
      : out_(out), family_(family), format_(format) {}

  void append_head() {
    const std::string_view name = format_ == MetricsFormat::open_metrics ? open_metrics_name(family_.name, family_.type)
                                                                         : std::string_view(family_.name);
    ((out_ += "# HELP ") += name) += ' ';
    append_escaped(out_, family_.help, format_ == MetricsFormat::open_metrics);
    const bool known = format_ != MetricsFormat::open_metrics || family_.type != MetricType::Counter ||
                       family_.name.ends_with("_total");
    const auto type = known ? type_name(family_.type) : type_name(MetricType::Untyped);
    ((((out_ += "\n# TYPE ") += name) += ' ') += type) += '\n';
  }

  void append_series(const ClientMetric& series) {
    switch (family_.type) {
      case MetricType::Counter:
        sample("", series.label, nullptr, number(series.counter.value));
        break;
      case MetricType::Gauge:
        sample("", series.label, nullptr, number(series.gauge.value));
        break;
      case MetricType::Histogram:
        append_histogram(series);
        break;
      // obs::Metrics makes no others.
      case MetricType::Summary:
      case MetricType::Untyped:
        break;
    }
  }

 private:
  void append_histogram(const ClientMetric& series) {
    const auto& histogram = series.histogram;
    for (const auto& bucket : histogram.bucket) {
      const auto bound = bound_text(bucket.upper_bound);
      sample("_bucket", series.label, &bound, std::to_string(bucket.cumulative_count));
    }
    const bool ends_in_infinity = !histogram.bucket.empty() && std::isinf(histogram.bucket.back().upper_bound);
    if (!ends_in_infinity) {
      const std::string bound = "+Inf";
      sample("_bucket", series.label, &bound, std::to_string(histogram.sample_count));
    }
    sample("_sum", series.label, nullptr, number(histogram.sample_sum));
    sample("_count", series.label, nullptr, std::to_string(histogram.sample_count));
  }

  /// OpenMetrics wants bounds to look like floating point numbers, so that every exposer writes them alike.
  std::string bound_text(double bound) const {
    auto text = number(bound);
    if (format_ == MetricsFormat::open_metrics && text.find_first_not_of("-0123456789") == std::string::npos)
      text += ".0";
    return text;
  }

  void sample(std::string_view suffix, const std::vector<ClientMetric::Label>& labels, const std::string* bound,
              std::string_view value) {
    (out_ += family_.name) += suffix;
    if (!labels.empty() || bound != nullptr) {
      char separator = '{';
      for (const auto& label : labels) {
        append_label(separator, label.name, label.value);
        separator = ',';
      }
      if (bound != nullptr) append_label(separator, "le", *bound);
      out_ += '}';
    }
    ((out_ += ' ') += value) += '\n';
  }

  void append_label(char separator, std::string_view name, std::string_view value) {
    ((out_ += separator) += name) += "=\"";
    append_escaped(out_, value, true);
    out_ += '"';
  }

  std::string& out_;
  const MetricFamily& family_;
  MetricsFormat format_;
};

}  // namespace

std::string_view open_metrics_name(std::string_view name, MetricType type) {
  if (type == MetricType::Counter && name.ends_with("_total")) name.remove_suffix(6);
  return name;
}

std::string metrics_text(std::vector<MetricFamily> families, MetricsFormat format) {
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string out;
  for (auto& family : families) {
    std::sort(family.metric.begin(), family.metric.end(),
              [](const auto& a, const auto& b) { return a.label < b.label; });
    FamilyText text{out, family, format};
    text.append_head();
    for (const auto& series : family.metric) text.append_series(series);
  }
  if (format == MetricsFormat::open_metrics) out += "# EOF\n";
  return out;
}

namespace {

bool prefers_open_metrics(const HttpRequest& request) {
  const double open_metrics = media_quality(request.accept, "application/openmetrics-text", "version=1.0.0");
  const double text = media_quality(request.accept, "text/plain", "version=0.0.4");
  // A client that takes anything gets what a person can read in any browser.
  return open_metrics > text;
}

}  // namespace

HttpHandler metrics_handler(const Metrics& metrics) {
  return [&metrics](const HttpRequest& request) -> HttpResponse {
    if (request.path != "/metrics") return HttpResponse::not_found("this server has /metrics");
    if (prefers_open_metrics(request))
      return {.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
              .body = metrics.open_metrics()};
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()};
  };
}

}  // namespace hubferry::obs
