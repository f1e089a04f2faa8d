#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace hubferry::obs {

/// Only ever grows. Thread-safe.
class Counter {
 public:
  using Series = prometheus::Counter;
  explicit Counter(Series& series) : series_(&series) {}

  /// A negative amount is ignored.
  void increment(double by = 1);
  [[nodiscard]] double value() const;

 private:
  Series* series_;
};

/// Goes up and down. Thread-safe.
class Gauge {
 public:
  using Series = prometheus::Gauge;
  explicit Gauge(Series& series) : series_(&series) {}

  void set(double value);
  void add(double by);
  [[nodiscard]] double value() const;

 private:
  Series* series_;
};

/// Counts values by size. Thread-safe.
class Histogram {
 public:
  using Series = prometheus::Histogram;
  explicit Histogram(Series& series) : series_(&series) {}

  void observe(double value);
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] double sum() const;
  /// How many values were at most `bound`, which must be one of the buckets; all of them for +Inf.
  [[nodiscard]] std::uint64_t count_up_to(double bound) const;

 private:
  Series* series_;
};

/// One metric with labels: a series for each combination of their values.
/// Thread-safe; the references live as long as the Metrics.
template <typename T>
class Family {
 public:
  class Impl;
  explicit Family(std::unique_ptr<Impl> impl);
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family();

  /// The series of these label values, in the order of the names; made at 0 when it is new.
  /// When there are `max_series` already, every further combination counts in one series whose values are "other".
  /// Throws std::logic_error when the number of values is wrong.
  T& with(std::initializer_list<std::string_view> values);

  [[nodiscard]] std::size_t series() const;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Upper bounds of buckets, each `factor` times the one before.
std::vector<double> exponential_buckets(double first, double factor, std::size_t count);

class ScrapeHook;

/// All metrics of a process, and their text for Prometheus.
///
/// Requesting a name twice gives the same object; requesting it with another type, other labels or other buckets is a
/// std::logic_error, as is a name that `promtool check metrics` would reject. Series exist, at 0, from the moment
/// they are first requested: request them at startup. Thread-safe.
class Metrics {
 public:
  static constexpr std::size_t default_max_series = 100;

  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  Counter& counter(const std::string& name, const std::string& help);
  Gauge& gauge(const std::string& name, const std::string& help);
  Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets);

  Family<Counter>& counter_family(const std::string& name, const std::string& help,
                                  const std::vector<std::string>& label_names,
                                  std::size_t max_series = default_max_series);
  /// The same for a name that another project has given, which its users' dashboards rely on: without `_total`.
  /// OpenMetrics knows no such counter: its type is unknown there, as with Prometheus' own clients.
  Family<Counter>& given_counter_family(const std::string& name, const std::string& help,
                                        const std::vector<std::string>& label_names,
                                        std::size_t max_series = default_max_series);
  Family<Gauge>& gauge_family(const std::string& name, const std::string& help,
                              const std::vector<std::string>& label_names, std::size_t max_series = default_max_series);
  Family<Histogram>& histogram_family(const std::string& name, const std::string& help,
                                      const std::vector<std::string>& label_names, const std::vector<double>& buckets,
                                      std::size_t max_series = default_max_series);

  /// Called before each scrape, on the scraping thread, one scrape at a time: to refresh gauges. What it refers to
  /// must outlive the last scrape. Exceptions of a hook are ignored. It must not scrape or end a ScrapeHook itself.
  void on_collect(std::function<void()> refresh);
  /// The same for as long as the returned object lives: for sources that end before the metrics do.
  [[nodiscard]] ScrapeHook while_alive_on_collect(std::function<void()> refresh);

  /// Prometheus' text format 0.0.4, families by name.
  [[nodiscard]] std::string text() const;
  /// OpenMetrics 1.0.0.
  [[nodiscard]] std::string open_metrics() const;

 private:
  friend class ScrapeHook;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Keeps a function of Metrics::while_alive_on_collect() registered. Its destructor waits for a scrape that is calling
/// the function right now. May outlive the Metrics.
class ScrapeHook {
 public:
  ScrapeHook() = default;
  ScrapeHook(ScrapeHook&&) noexcept;
  ScrapeHook& operator=(ScrapeHook&&) noexcept;
  ~ScrapeHook();

 private:
  friend class Metrics;
  ScrapeHook(const std::shared_ptr<Metrics::Impl>& impl, std::uint64_t id) : impl_(impl), id_(id) {}
  void remove();

  std::weak_ptr<Metrics::Impl> impl_;
  std::uint64_t id_ = 0;
};

/// CPU, memory, file descriptors and start time of this process, under the names that all Prometheus clients use.
void add_process_metrics(Metrics& metrics);

/// `hubferry_build_info{version,revision,compiler} 1`.
void add_build_info(Metrics& metrics);

}  // namespace hubferry::obs
