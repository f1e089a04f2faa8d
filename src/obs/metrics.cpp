#include "hubferry/obs/metrics.hpp"

#include <prometheus/check_names.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "obs/metric_family.hpp"

namespace hubferry::obs {

namespace {

using prometheus::MetricType;

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> candidates) {
  return std::find(candidates.begin(), candidates.end(), text) != candidates.end();
}

[[noreturn]] void refuse(const MetricShape& shape, const std::string& why) {
  throw std::logic_error("metric '" + shape.name + "' " + why);
}

enum class Naming { ours, given };

/// The rules of Prometheus, OpenMetrics and promtool, checked here rather than at the first scrape.
void check_shape(const MetricShape& shape, const std::string& help, Naming naming) {
  const std::string_view name = shape.name;
  if (!prometheus::CheckMetricName(shape.name)) refuse(shape, "has a name that Prometheus does not allow");
  if (help.empty()) refuse(shape, "needs a help text");
  const bool counter = shape.type == MetricType::Counter;
  if (counter && naming == Naming::ours && (!name.ends_with("_total") || name == "_total"))
    refuse(shape, "is a counter: its name must end in _total");
  if (!counter && name.ends_with("_total")) refuse(shape, "is not a counter: its name must not end in _total");
  for (const auto* suffix : {"_bucket", "_count", "_sum", "_created"})
    if (name.ends_with(suffix)) refuse(shape, std::string("must not end in ") + suffix);
  for (const auto& label : shape.label_names) {
    if (!prometheus::CheckLabelName(label)) refuse(shape, "has a label name that Prometheus does not allow: " + label);
    if (is_any_of(label, {"le", "quantile"})) refuse(shape, "has a label name with a meaning of its own: " + label);
    if (std::count(shape.label_names.begin(), shape.label_names.end(), label) > 1)
      refuse(shape, "has the label " + label + " twice");
  }
  if (shape.type == MetricType::Histogram) {
    const auto& buckets = shape.buckets;
    if (buckets.empty()) refuse(shape, "needs at least one bucket");
    // Not std::is_sorted: equal bounds are wrong as well, and so is NaN, which compares false to all.
    for (std::size_t i = 1; i < buckets.size(); ++i)
      if (!(buckets[i - 1] < buckets[i])) refuse(shape, "has buckets that do not grow");
  }
}

}  // namespace

struct Metrics::Impl {
  /// One metric, as whichever type it is.
  struct Entry {
    MetricShape shape;
    std::unique_ptr<Family<Counter>> counters;
    std::unique_ptr<Family<Gauge>> gauges;
    std::unique_ptr<Family<Histogram>> histograms;
  };

  /// Finds the family, or makes it with `build` and keeps it in `slot`.
  template <typename T>
  Family<T>& family(std::unique_ptr<Family<T>> Entry::* slot, prometheus::detail::Builder<typename T::Series> build,
                    MetricShape shape, const std::string& help, std::size_t max_series, Naming naming = Naming::ours) {
    check_shape(shape, help, naming);
    const std::lock_guard lock{mutex};
    auto& entry = entries[std::string(open_metrics_name(shape.name, shape.type))];
    if (!entry.shape.name.empty()) {
      if (entry.shape.name != shape.name)
        refuse(shape, "is too close to '" + entry.shape.name + "', which exists already");
      if (entry.shape != shape) refuse(shape, "exists already with another type, other labels or other buckets");
      return *(entry.*slot);
    }
    auto& series = build.Name(shape.name).Help(help).Register(registry);
    entry.shape = shape;
    entry.*slot =
        std::make_unique<Family<T>>(std::make_unique<typename Family<T>::Impl>(std::move(shape), max_series, series));
    return *(entry.*slot);
  }

  std::string scrape(MetricsFormat format) {
    const std::lock_guard lock{scrape_mutex};
    for (const auto& refresh : all_hooks()) {
      try {
        refresh();
      } catch (const std::exception&) {
        // One source that cannot be read must not cost all the others.
      }
    }
    return metrics_text(registry.Collect(), format);
  }

  std::uint64_t add_hook(std::function<void()> refresh) {
    const std::lock_guard lock{mutex};
    hooks.emplace(++last_hook, std::move(refresh));
    return last_hook;
  }

  void remove_hook(std::uint64_t id) {
    const std::lock_guard no_scrape{scrape_mutex};
    const std::lock_guard lock{mutex};
    hooks.erase(id);
  }

  std::vector<std::function<void()>> all_hooks() {
    const std::lock_guard lock{mutex};
    std::vector<std::function<void()>> all;
    for (const auto& [id, refresh] : hooks) all.push_back(refresh);
    return all;
  }

  prometheus::Registry registry;
  std::mutex scrape_mutex;  // one scrape at a time; taken before `mutex`
  std::mutex mutex;         // guards what follows
  std::map<std::string, Entry> entries;
  std::map<std::uint64_t, std::function<void()>> hooks;
  std::uint64_t last_hook = 0;
};

std::vector<double> exponential_buckets(double first, double factor, std::size_t count) {
  std::vector<double> bounds;
  for (double bound = first; bounds.size() < count; bound *= factor) bounds.push_back(bound);
  return bounds;
}

Metrics::Metrics() : impl_(std::make_shared<Impl>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help) {
  return counter_family(name, help, {}).with({});
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help) {
  return gauge_family(name, help, {}).with({});
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets) {
  return histogram_family(name, help, {}, buckets).with({});
}

Family<Counter>& Metrics::counter_family(const std::string& name, const std::string& help,
                                         const std::vector<std::string>& label_names, std::size_t max_series) {
  return impl_->family<Counter>(&Impl::Entry::counters, prometheus::BuildCounter(),
                                {.name = name, .type = MetricType::Counter, .label_names = label_names, .buckets = {}},
                                help, max_series);
}

Family<Counter>& Metrics::given_counter_family(const std::string& name, const std::string& help,
                                               const std::vector<std::string>& label_names, std::size_t max_series) {
  return impl_->family<Counter>(&Impl::Entry::counters, prometheus::BuildCounter(),
                                {.name = name, .type = MetricType::Counter, .label_names = label_names, .buckets = {}},
                                help, max_series, Naming::given);
}

Family<Gauge>& Metrics::gauge_family(const std::string& name, const std::string& help,
                                     const std::vector<std::string>& label_names, std::size_t max_series) {
  return impl_->family<Gauge>(&Impl::Entry::gauges, prometheus::BuildGauge(),
                              {.name = name, .type = MetricType::Gauge, .label_names = label_names, .buckets = {}},
                              help, max_series);
}

Family<Histogram>& Metrics::histogram_family(const std::string& name, const std::string& help,
                                             const std::vector<std::string>& label_names,
                                             const std::vector<double>& buckets, std::size_t max_series) {
  return impl_->family<Histogram>(
      &Impl::Entry::histograms, prometheus::BuildHistogram(),
      {.name = name, .type = MetricType::Histogram, .label_names = label_names, .buckets = buckets}, help, max_series);
}

void Metrics::on_collect(std::function<void()> refresh) {
  impl_->add_hook(std::move(refresh));
}

ScrapeHook Metrics::while_alive_on_collect(std::function<void()> refresh) {
  return {impl_, impl_->add_hook(std::move(refresh))};
}

ScrapeHook::ScrapeHook(ScrapeHook&& other) noexcept : impl_(std::move(other.impl_)), id_(other.id_) {}

ScrapeHook& ScrapeHook::operator=(ScrapeHook&& other) noexcept {
  remove();
  impl_ = std::move(other.impl_);
  id_ = other.id_;
  return *this;
}

ScrapeHook::~ScrapeHook() {
  remove();
}

void ScrapeHook::remove() {
  if (const auto impl = impl_.lock()) impl->remove_hook(id_);
  impl_.reset();
}

std::string Metrics::text() const {
  return impl_->scrape(MetricsFormat::text);
}

std::string Metrics::open_metrics() const {
  return impl_->scrape(MetricsFormat::open_metrics);
}

}  // namespace hubferry::obs
