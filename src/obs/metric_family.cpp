#include "obs/metric_family.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "hubferry/obs/utf8.hpp"

namespace hubferry::obs {

namespace {

/// Joins label values so that no two combinations give the same key.
template <typename Values>
void make_key(std::string& key, const Values& values) {
  key.clear();
  for (const auto& value : values) {
    const std::size_t size = value.size();
    key.append(reinterpret_cast<const char*>(&size), sizeof size);
    key += value;
  }
}

prometheus::Labels make_labels(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  prometheus::Labels labels;
  for (std::size_t i = 0; i < names.size(); ++i) labels.emplace(names[i], values[i]);
  return labels;
}

}  // namespace

void Counter::increment(double by) {
  series_->Increment(by);
}

double Counter::value() const {
  return series_->Value();
}

void Gauge::set(double value) {
  series_->Set(value);
}

void Gauge::add(double by) {
  series_->Increment(by);
}

double Gauge::value() const {
  return series_->Value();
}

void Histogram::observe(double value) {
  series_->Observe(value);
}

std::uint64_t Histogram::count() const {
  return series_->Collect().histogram.sample_count;
}

double Histogram::sum() const {
  return series_->Collect().histogram.sample_sum;
}

std::uint64_t Histogram::count_up_to(double bound) const {
  for (const auto& bucket : series_->Collect().histogram.bucket)
    if (bucket.upper_bound == bound) return bucket.cumulative_count;
  throw std::logic_error("the histogram has no bucket that ends at " + std::to_string(bound));
}

template <typename T>
T& Family<T>::Impl::with(std::initializer_list<std::string_view> values) {
  if (values.size() != shape_.label_names.size())
    throw std::logic_error("metric " + shape_.name + " has " + std::to_string(shape_.label_names.size()) +
                           " labels, but was asked for with " + std::to_string(values.size()) + " values");
  thread_local std::string key;
  make_key(key, values);
  const bool clean = std::all_of(values.begin(), values.end(), is_utf8);
  {
    const std::shared_lock lock{mutex_};
    if (auto* known = find(key)) return *known;
    if (other_ != nullptr && clean) return *other_;
  }
  // Prometheus refuses a whole scrape for one byte that is no UTF-8.
  std::vector<std::string> cleaned;
  for (const auto value : values) cleaned.push_back(to_utf8(value));
  make_key(key, cleaned);
  const std::lock_guard lock{mutex_};
  if (auto* known = find(key)) return *known;
  if (by_values_.size() < max_series_) return add(key, cleaned);
  if (other_ == nullptr) {
    const std::vector<std::string> other(values.size(), "other");
    make_key(key, other);
    other_ = find(key);
    if (other_ == nullptr) other_ = &add(key, other);
  }
  return *other_;
}

template <typename T>
std::size_t Family<T>::Impl::series() const {
  const std::shared_lock lock{mutex_};
  return by_values_.size();
}

template <typename T>
T* Family<T>::Impl::find(std::string_view key) {
  const auto found = by_values_.find(key);
  return found == by_values_.end() ? nullptr : &found->second;
}

template <typename T>
T& Family<T>::Impl::add(const std::string& key, const std::vector<std::string>& values) {
  const auto labels = make_labels(shape_.label_names, values);
  if constexpr (std::is_same_v<T, Histogram>)
    return by_values_.emplace(key, T{family_.Add(labels, shape_.buckets)}).first->second;
  else
    return by_values_.emplace(key, T{family_.Add(labels)}).first->second;
}

template <typename T>
Family<T>::Family(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

template <typename T>
Family<T>::~Family() = default;

template <typename T>
T& Family<T>::with(std::initializer_list<std::string_view> values) {
  return impl_->with(values);
}

template <typename T>
std::size_t Family<T>::series() const {
  return impl_->series();
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

}  // namespace hubferry::obs
