#include "sim/apiserver/core.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <utility>

#include "sim/apiserver/object_validation.hpp"

namespace hubferry::sim {

namespace {

/// For RBAC an apply is a patch.
std::string_view rbac_verb(kube::Verb verb) {
  return verb_name(verb == kube::Verb::apply ? kube::Verb::patch : verb);
}

}  // namespace

Core::Core(Options options, const kube::Env& env, async::Random source)
    : faults(source.fork()),
      random(source),
      options_(std::move(options)),
      clock_(env.clock),
      log_(env.log.named("server").with("server", options_.name)),
      store_(options_.history) {
  for (auto& kind : Kinds::built_in()) {
    const bool keeps_objects = kind.stored && kind.view == nullptr;
    if (keeps_objects)
      kind.collection = &store_.add_collection();
    else if (kind.view != nullptr)
      kind.collection = kinds_.find(kind.view->stored)->collection;
    auto added = kinds_.add(std::move(kind));
    if (keeps_objects) stored_kinds_.push_back(std::move(added));
  }
  const User system{"system:apiserver", {"system:masters"}, {}};
  for (const char* name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = kube::resources::namespaces;
    request.body = json::object{{"metadata", json::object{{"name", name}}}};
    (void)execute(system, std::move(request));
  }
}

void Core::record(const User& user, std::string_view verb, const kube::Resource& resource,
                  const std::string& subresource, const kube::Key& key, std::string outcome) {
  if (!options_.record_requests) return;
  static std::atomic<std::uint64_t> next_sequence = 0;
  requests.push_back({clock_.now(), user.name, std::string{verb}, resource.display_name(), subresource, key,
                      std::move(outcome), next_sequence++});
}

std::string Core::timestamp() const {
  return async::format_time(clock_.wall_now());
}

std::string Core::manager_of(const kube::Request& request) const {
  return request.field_manager.empty() ? options_.field_manager : request.field_manager;
}

const Kind& Core::kind_of(const Collection& collection) const {
  return *stored_kinds_[collection.id()];
}

Outcome<const Kind*> Core::authorize(const User& user, std::string_view verb, const kube::Resource& resource,
                                     const kube::Key& key, const std::string& subresource) const {
  const auto* kind = kinds_.find(resource);
  if (kind == nullptr) return errors::no_such_resource();
  if (!subresource.empty() && !(subresource == "status" && kind->status) &&
      std::ranges::find(kind->extra_subresources, subresource) == kind->extra_subresources.end())
    return errors::no_such_resource();
  const RbacAuthorizer::Question question{verb,    kind->resource.group, kind->resource.plural, subresource, key.ns,
                                          key.name};
  if (!authorizer_.allows(user, question)) {
    std::string why = "User \"" + user.name + "\" cannot " + std::string{verb} + " resource \"" +
                      kind->resource.plural + (subresource.empty() ? "" : "/" + subresource) + "\" in API group \"" +
                      kind->resource.group + "\" ";
    why += key.ns.empty() ? std::string{"at the cluster scope"} : "in the namespace \"" + key.ns + "\"";
    return errors::forbidden(kind->resource, key.name, why);
  }
  return kind;
}

Outcome<> Core::check_admission(const User& user, const Kind& kind, const kube::Object* before,
                                const json::object& after) {
  if (admissions_.empty()) return {};
  const auto [first, last] = admissions_.equal_range(kind.resource.display_name());
  if (first == last) return {};
  const AdmissionReview review{
      user, before, after,
      [&](const std::string& verb, const kube::Resource& resource, const kube::Key& key,
          const std::string& subresource) {
        return authorizer_.allows(user, {verb, resource.group, resource.plural, subresource, key.ns, key.name});
      },
      [&](const kube::Resource& resource, const kube::Key& key) -> std::optional<kube::Object> {
        const auto* other = kinds_.find(resource);
        if (other == nullptr || other->collection == nullptr) return std::nullopt;
        const auto found = other->collection->entries.find(key);
        if (found == other->collection->entries.end()) return std::nullopt;
        return found->second.object;
      }};
  for (auto admission = first; admission != last; ++admission)
    if (const auto why = admission->second(review))
      return errors::forbidden(kind.resource, kube::string_at(after, {"metadata", "name"}), *why);
  return {};
}

void Core::deliver_late(async::TimePoint when, const User& user, kube::Request request) {
  late_.emplace(when, LateRequest{user, std::move(request)});
}

void Core::execute_late_requests() {
  while (!late_.empty() && late_.begin()->first <= clock_.now()) {
    auto arrived = late_.extract(late_.begin());
    auto& [user, request] = arrived.mapped();
    const auto verb = rbac_verb(request.verb);
    const auto resource = request.resource;
    const auto subresource = request.subresource;
    const auto key = request.key;
    const auto outcome = execute(user, std::move(request));
    record(user, verb, resource, subresource, key,
           outcome ? "ok, late" : std::to_string(outcome.error().code) + " " + outcome.error().reason + ", late");
  }
}

void Core::observe_writes(WriteObserver observer) {
  store_.on_change = [this, observer = std::move(observer)](const Collection& collection, const kube::Object* before,
                                                            const kube::Object* after) {
    static const std::string nobody;
    observer({writer_ != nullptr ? writer_->name : nobody, kind_of(collection).resource, before, after});
  };
}

Outcome<kube::Object> Core::execute(const User& user, kube::Request request) {
  execute_late_requests();
  struct Writer {
    Writer(const User*& writer, const User& now) : writer_(writer), before_(std::exchange(writer, &now)) {}
    ~Writer() { writer_ = before_; }
    const User*& writer_;
    const User* before_;
  } writer{writer_, user};
  const auto authorized = authorize(user, rbac_verb(request.verb), request.resource, request.key, request.subresource);
  if (!authorized) return authorized.error();
  const Kind& kind = **authorized;
  if (kind.resource.namespaced && request.key.ns.empty())
    return request.verb == kube::Verb::create
               ? errors::bad_request("an empty namespace may not be set during creation")
               : errors::bad_request("an empty namespace may not be set when a resource name is provided");
  if (!kind.resource.namespaced) request.key.ns.clear();
  if (!kind.stored) {
    if (request.verb != kube::Verb::create) return errors::method_not_allowed();
    if (!request.body.is_object()) return errors::bad_request("the body must be an object");
    return review(user, kind, request.body.get_object());
  }
  switch (request.verb) {
    case kube::Verb::get:
      return get(kind, request);
    case kube::Verb::create:
      return create(user, kind, request);
    case kube::Verb::update:
      return update(user, kind, request);
    case kube::Verb::patch:
      return patch(user, kind, request);
    case kube::Verb::apply:
      return apply(user, kind, request);
    case kube::Verb::remove:
      return remove(kind, request);
  }
  return errors::method_not_allowed();
}

Outcome<kube::Object> Core::get(const Kind& kind, const kube::Request& request) const {
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) return errors::not_found(kind.resource, request.key.name);
  return in_version(kind, found->second.object);
}

void Core::run_background_on(const async::Executor& executor) {
  if (!executor_) executor_ = executor;
  schedule();
}

void Core::later(std::function<void()> task) {
  tasks_.push_back(std::move(task));
  schedule();
}

void Core::schedule() {
  if (scheduled_ || tasks_.empty() || !executor_) return;
  scheduled_ = true;
  async::asio::post(executor_, [self = weak_from_this()] {
    if (const auto core = self.lock()) core->run_one_task();
  });
}

void Core::run_one_task() {
  scheduled_ = false;
  if (tasks_.empty()) return;
  auto task = std::move(tasks_.front());
  tasks_.pop_front();
  try {
    task();
  } catch (const std::exception& failure) {
    // An invalid object of a client must not crash the server.
    log_.error("background work failed", {{"error", failure.what()}});
  }
  schedule();
}

}  // namespace hubferry::sim
