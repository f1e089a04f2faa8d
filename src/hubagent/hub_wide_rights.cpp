#include "hubagent/hub_wide_rights.hpp"

namespace hubferry::hubagent {

namespace {

constexpr auto review_lifetime = std::chrono::minutes{10};
constexpr auto pause_after_failed_review = std::chrono::seconds{5};

}  // namespace

async::Awaitable<bool> HubWideRights::may(std::string verb, kube::Resource resource, std::string name) {
  auto& review = reviews_[verb + " " + resource.display_name() + " " + name];
  while (clock_.now() >= review.until && review.turn.taken()) co_await review.turn.wait();
  if (clock_.now() < review.until) co_return review.allowed;
  const Turn::Asking asking{review.turn};
  auto allowed = co_await api_.may(std::move(verb), resource, kube::Key{{}, std::move(name)});
  review.allowed = allowed && *allowed;
  review.until =
      clock_.now() + (allowed ? async::Duration{review_lifetime} : async::Duration{pause_after_failed_review});
  co_return review.allowed;
}

}  // namespace hubferry::hubagent
