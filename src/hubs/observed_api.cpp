#include "hubs/observed_api.hpp"

#include "hubferry/async/clock.hpp"

namespace hubferry::hubs {

namespace {

// Longer than a healthy server takes; short enough to be seen within two seconds.
constexpr async::Duration longest_silence = std::chrono::milliseconds{1000};

}  // namespace

class ObservedApi::Pending {
 public:
  explicit Pending(ObservedApi& api) : api_(api), place_(api.open_.insert(api.open_.end(), api.clock_.now())) {
    if (api.open_.size() == 1) api.begun_.notify();
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() { api_.open_.erase(place_); }

 private:
  ObservedApi& api_;
  Open::iterator place_;
};

ObservedApi::ObservedApi(std::shared_ptr<kube::Api> inner, std::string hub, std::string credential, Troubles& troubles,
                         async::Clock& clock)
    : inner_(std::move(inner)),
      hub_(std::move(hub)),
      credential_(std::move(credential)),
      troubles_(troubles),
      clock_(clock) {}

template <typename Result>
Result ObservedApi::observed(Result result) {
  if (result) {
    answered();
    return result;
  }
  observe(result.error());
  if (result.error().kind != kube::ErrorKind::unauthorized || credential_.empty()) return result;
  auto error = result.error();
  error.message += " (the credential is that of " + credential_ + ")";
  return error;
}

void ObservedApi::answered() {
  silent_ = false;
  if (!retired_) troubles_.clear(hub_);
}

void ObservedApi::observe(const kube::Error& error) {
  if (retired_) return;
  const std::string hub = "hub '" + hub_ + "' ";
  switch (error.kind) {
    case kube::ErrorKind::unreachable:
      return troubles_.set(hub_, hub + "does not answer: " + error.message);
    case kube::ErrorKind::unauthorized:
      return troubles_.set(hub_, hub + "rejects the credential" +
                                     (credential_.empty() ? std::string{} : " of " + credential_) + " (401)");
    case kube::ErrorKind::retry_later:
      return troubles_.set(hub_, hub + "is overloaded or not ready: " + error.message);
    case kube::ErrorKind::ambiguous:
      return;  // of a write: the next request shows more
    default:
      return answered();
  }
}

async::Awaitable<kube::Result<kube::Object>> ObservedApi::call(kube::Request request) {
  const Pending pending{*this};
  auto answer = co_await inner_->call(std::move(request));
  co_return observed(std::move(answer));
}

async::Awaitable<kube::Result<kube::ListPage>> ObservedApi::list(kube::Resource resource, kube::ListOptions options,
                                                                 const kube::Decoder& decoder) {
  const Pending pending{*this};
  auto page = co_await inner_->list(std::move(resource), std::move(options), decoder);
  co_return observed(std::move(page));
}

async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> ObservedApi::watch(kube::Resource resource,
                                                                                      kube::WatchOptions options,
                                                                                      const kube::Decoder& decoder) {
  auto stream = co_await inner_->watch(std::move(resource), std::move(options), decoder);
  co_return observed(std::move(stream));
}

async::Awaitable<kube::Result<kube::json::value>> ObservedApi::get_path(std::string path) {
  const Pending pending{*this};
  auto answer = co_await inner_->get_path(std::move(path));
  co_return observed(std::move(answer));
}

async::Awaitable<> ObservedApi::watch_silence() {
  for (;;) {
    while (open_.empty()) co_await begun_.wait();
    const auto due = async::later(open_.front(), longest_silence);
    if (clock_.now() < due) {
      co_await clock_.sleep_until(due);
      continue;
    }
    if (!std::exchange(silent_, true) && !retired_ && troubles_.find(hub_).empty())
      troubles_.set(hub_, "hub '" + hub_ + "' has not answered a request for more than " +
                              async::format_duration(longest_silence));
    co_await clock_.sleep_for(longest_silence);
  }
}

}  // namespace hubferry::hubs
