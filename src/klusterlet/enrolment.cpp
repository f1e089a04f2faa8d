#include "klusterlet/enrolment.hpp"

#include <algorithm>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/hub_pause.hpp"
#include "klusterlet/object_follower.hpp"

namespace hubferry::klusterlet {

using async::Awaitable;
using kube::json::array;
using kube::json::object;
using kube::resources::certificate_signing_requests;

namespace {

// The pause while the hub has too many requests of ours.
constexpr auto halt_pause = std::chrono::minutes{5};

object request_object(const EnrolmentOptions& options, const std::string& pem) {
  object spec{{"request", kube::encode_base64(pem)},
              {"signerName", "kubernetes.io/kube-apiserver-client"},
              {"usages", array{"digital signature", "key encipherment", "client auth"}}};
  if (options.lifetime.count() != 0) spec["expirationSeconds"] = options.lifetime.count();
  const auto& cluster = options.identity.cluster;
  return {{"metadata",
           object{{"generateName", cluster + "-"}, {"labels", object{{ocm::names::cluster_name_label, cluster}}}}},
          {"spec", std::move(spec)}};
}

Awaitable<kube::Result<std::size_t>> count_requests(kube::Api& api, std::string cluster) {
  kube::ListOptions options;
  options.label_selector =
      std::string{ocm::names::cluster_name_label} + "=" + cluster + ",!" + ocm::names::addon_name_label;
  auto listed = co_await api.list(certificate_signing_requests, std::move(options), kube::object_decoder());
  if (!listed) co_return listed.error();
  const auto prefix = cluster + "-";
  co_return static_cast<std::size_t>(
      std::ranges::count_if(listed->items, [&](const auto& item) { return item.key.name.starts_with(prefix); }));
}

/// Waits until the request is answered. A denial is reported, but is no answer: it may be approved after all, and a new
/// request would be denied as well; the hub deletes it after an hour.
Awaitable<RequestAnswer> wait_for_answer(kube::Api& api, kube::Object created, std::string public_key,
                                         const EnrolmentOptions& options, const kube::Env& env) {
  ObjectFollower follower{api, certificate_signing_requests, created.key(), kube::object_decoder(), env};
  follower.begin_with_watch({.resource_version = std::string{created.resource_version()}});
  while (true) {
    const auto request = std::static_pointer_cast<const kube::Object>(co_await follower.next());
    auto answer = answer_of(request.get(), public_key, *options.keys);
    if (answer.state != RequestState::waiting) co_return answer;
    const auto* denied = kube::find_condition(*request, "Denied");
    if (denied != nullptr)
      options.report("CSRDenied", "certificate request " + std::string{created.name()} +
                                      " was denied: " + std::string{kube::string_at(*denied, {"message"})});
  }
}

}  // namespace

RequestAnswer answer_of(const kube::Object* request, const std::string& public_key, KeySource& keys) {
  if (request == nullptr) return {RequestState::lost, {}};
  auto certificate = kube::decode_base64(request->string_at({"status", "certificate"})).value_or(std::string{});
  if (certificate.empty())
    return {kube::is_condition_true(*request, "Failed") ? RequestState::lost : RequestState::waiting, {}};
  if (keys.read(certificate).public_key != public_key) return {RequestState::mismatch, {}};
  return {RequestState::issued, std::move(certificate)};
}

Awaitable<Enrolled> enrol(kube::Api& api, EnrolmentOptions options, const kube::Env& env) {
  async::Backoff backoff{registration_retry, env.clock, env.random};
  for (bool counts = options.count_first;; counts = true) {
    if (counts) {
      auto count = co_await count_requests(api, options.identity.cluster);
      if (!count) {
        options.failed("listing certificate requests", count.error());
        co_await env.clock.sleep_for(pause_after(count.error(), backoff, env.random));
        continue;
      }
      if (*count >= most_requests) {
        options.report("ClientCertificateCreationHalted",
                       "the hub already has " + std::to_string(*count) + " certificate requests of this cluster");
        co_await env.clock.sleep_for(env.random.between(halt_pause, halt_pause + halt_pause / 4));
        continue;
      }
    }
    auto made = options.keys->make_request(options.identity);
    auto created = co_await api.create(certificate_signing_requests, request_object(options, made.request));
    if (!created) {
      options.failed("creating a certificate request", created.error());
      co_await env.clock.sleep_for(pause_after(created.error(), backoff, env.random));
      continue;
    }
    options.report("CSRCreated", "certificate request created: " + std::string{created->name()});
    auto answer = co_await wait_for_answer(api, std::move(*created), made.public_key, options, env);
    if (answer.state == RequestState::issued) co_return Enrolled{std::move(answer.certificate), made.key};
    options.report("ClientCertificateUpdateFailed",
                   answer.state == RequestState::mismatch
                       ? "the issued certificate is not for our key"
                       : "the certificate request was deleted or failed before a certificate was issued");
    co_await backoff.pause();
  }
}

}  // namespace hubferry::klusterlet
