#include <algorithm>
#include <mutex>

#include "hubferry/obs/log_sink.hpp"
#include "obs/log_target.hpp"

namespace hubferry::obs {

class LogCapture::Target final : public detail::LogTarget {
 public:
  explicit Target(const Options& options)
      : LogTarget({.format = options.format, .colour = false, .clock = options.clock}, options.level) {}

  void take(std::string_view line) override {
    line.remove_suffix(1);
    const std::lock_guard lock{mutex_};
    lines_.emplace_back(line);
  }

  std::vector<std::string> lines() const {
    const std::lock_guard lock{mutex_};
    return lines_;
  }

  void clear() {
    const std::lock_guard lock{mutex_};
    lines_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

LogCapture::LogCapture() : LogCapture(Options{}) {}

LogCapture::LogCapture(Options options) : target_(std::make_shared<Target>(options)) {}

Logger LogCapture::logger() const {
  return detail::LogTarget::logger_for(target_);
}

void LogCapture::set_level(Level level) {
  target_->set_level(level);
}

std::vector<std::string> LogCapture::lines() const {
  return target_->lines();
}

bool LogCapture::contains(std::string_view text) const {
  const auto all = lines();
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

void LogCapture::clear() {
  target_->clear();
}

}  // namespace hubferry::obs
