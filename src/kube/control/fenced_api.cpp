#include <algorithm>

#include "hubferry/kube/fence.hpp"

namespace hubferry::kube {

namespace {

/// For a write without a deadline of its own: as long as clients give it by default.
constexpr Duration write_timeout = std::chrono::seconds{30};

bool is_deletion(const Request& request) {
  return request.verb == Verb::remove;
}

Error not_sent(const Request& request, const std::string& why) {
  return {ErrorKind::retry_later, 0, {}, "not sent to " + request.resource.display_name() + ": " + why, std::nullopt};
}

class FencedApi final : public Api {
 public:
  FencedApi(std::shared_ptr<Api> api, Fence& fence, Env env, IsDestructive is_destructive)
      : api_(std::move(api)), fence_(fence), env_(std::move(env)), is_destructive_(std::move(is_destructive)) {}

  Awaitable<Result<Object>> call(Request request) override {
    if (request.verb == Verb::get || request.dry_run) return api_->call(std::move(request));
    return write(std::move(request));
  }
  Awaitable<Result<ListPage>> list(Resource resource, ListOptions options, const Decoder& decoder) override {
    return api_->list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<Result<std::unique_ptr<WatchStream>>> watch(Resource resource, WatchOptions options,
                                                        const Decoder& decoder) override {
    return api_->watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<Result<json::value>> get_path(std::string path) override { return api_->get_path(std::move(path)); }
  [[nodiscard]] std::string_view name() const override { return api_->name(); }

 private:
  Awaitable<Result<Object>> write(Request request) {
    const auto asked =
        request.deadline == TimePoint{} ? async::later(env_.clock.now(), write_timeout) : request.deadline;
    while (true) {
      if (is_destructive_(request)) {
        const bool leads = co_await fence_.confirm();
        if (!leads) co_return not_sent(request, "the Lease does not confirm that this process leads");
      }
      const auto term_end = fence_.until();
      if (env_.clock.now() + fence_.least_time() > term_end)
        co_return not_sent(request, "the term of this leader ends");
      request.deadline = std::min(asked, term_end);
      auto answer = co_await api_->call(request);
      // It waited for a connection until the end of a term that has been renewed since.
      const auto now = env_.clock.now();
      const bool cut_short = request.deadline < asked && now >= request.deadline && now < asked;
      if (answer || answer.error().kind != ErrorKind::unreachable || !cut_short) co_return answer;
    }
  }

  std::shared_ptr<Api> api_;
  Fence& fence_;
  Env env_;
  IsDestructive is_destructive_;
};

}  // namespace

std::shared_ptr<Api> make_fenced_api(std::shared_ptr<Api> api, Fence& fence, Env env, IsDestructive is_destructive) {
  return std::make_shared<FencedApi>(std::move(api), fence, std::move(env), std::move(is_destructive));
}

std::shared_ptr<Api> make_fenced_api(std::shared_ptr<Api> api, Fence& fence, Env env) {
  return make_fenced_api(std::move(api), fence, std::move(env), is_deletion);
}

}  // namespace hubferry::kube
