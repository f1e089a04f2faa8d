#include "relocator/definition.hpp"

#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::relocator {

namespace {

constexpr auto first_pause = std::chrono::seconds{5};
constexpr auto longest_pause = std::chrono::minutes{5};
constexpr auto condition_pause = std::chrono::minutes{1};
/// The reason by which Hive's own relocation controller says that no ClusterRelocate matches.
constexpr std::string_view hive_no_match = "NoMatchingRelocates";

/// True if its condition says that this relocator cannot be used, which may be over.
bool names_as_unusable(const Object& deployment, const Object& relocator) {
  const auto* present = kube::find_condition(deployment, names::condition);
  return present != nullptr &&
         kube::string_at(*present, {"message"}).find(unusable(relocator.name())) != std::string_view::npos;
}

/// True if the object's annotations are not as wanted; then they are.
bool apply_annotations(json::object& object, const json::object& wanted) {
  auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
  const json::object before = annotations;
  for (const auto& entry : wanted) {
    if (entry.value().is_null()) {
      annotations.erase(entry.key());
    } else {
      annotations[entry.key()] = entry.value();
    }
  }
  return annotations != before;
}

}  // namespace

Duration pause_after(unsigned failures) {
  Duration pause = first_pause;
  for (unsigned at = 1; at < failures && pause < longest_pause; ++at) pause *= 2;
  return std::min<Duration>(pause, longest_pause);
}

Services::Services(kube::Api& of_source, hubs::Connect connect, const ControllerOptions& options,
                   const kube::Env& given)
    : source(of_source),
      env{given.clock, given.random, given.metrics, given.log.named("relocator")},
      destinations(source, std::move(connect), env),
      slots(options.at_once),
      reporter(source, options.instance, env),
      releases(*this) {}

Awaitable<> Services::begin() {
  no_abort_before = async::later(env.clock.now(), longest_request);
  // Before the first status is written, which would forget them.
  relocators->for_each([this](const Key&, const ObjectCache::Pointer& relocator) {
    releases.restore(*relocator);
    releases.look_for_forgotten(std::string{relocator->name()});
  });
  co_return;
}

std::vector<Key> Services::concerned(const Object& relocator) const {
  std::vector<Key> keys;
  const auto spec = read_spec(relocator);
  deployments([&](const Object& deployment) {
    const auto relocation = relocation_of(deployment);
    const bool moves = relocation.stage == Stage::outgoing && relocation.relocator == relocator.name();
    if (moves || names_as_unusable(deployment, relocator) || (spec && spec->selector.matches(deployment)))
      keys.push_back(deployment.key());
  });
  return keys;
}

void Services::observe(const Deployment* old, const Deployment* now) {
  reporter.observe(old != nullptr ? &old->object : nullptr, now != nullptr ? &now->object : nullptr);
  if (now != nullptr) return;
  releases.gone(old->object);
  failures.erase(old->object.key());
  condition_written.erase(old->object.key());
  unanswered_until.erase(old->object.key());
}

void set_condition(Context& context, Deployment& deployment, kube::ConditionStatus status, std::string_view reason,
                   std::string_view message) {
  // Hive's own relocation controller, where it is enabled, answers a True with a False of its own at once, unless it is
  // paused: the two must not answer each other without a pause.
  const auto now = context.clock().now();
  const auto written = context->condition_written.find(deployment.object.key());
  const auto* present = kube::find_condition(deployment.object, names::condition);
  const bool is_answered = status == kube::ConditionStatus::yes && deployment.relocation().stage == Stage::none &&
                           present != nullptr && kube::string_at(*present, {"reason"}) == hive_no_match;
  if (is_answered && written != context->condition_written.end() &&
      now < async::later(written->second, condition_pause))
    return;
  context->condition_written[deployment.object.key()] = now;
  // Without observedGeneration, which the schema of Hive's conditions does not have.
  const kube::Condition condition{names::condition, status, std::string{reason},
                                  std::string{kube::truncate_utf8(message, 2048)}, 0};
  kube::set_condition(deployment.status, condition, context.clock().wall_now());
}

ReconcileState fail(Context& context, Deployment& deployment, const Problem& problem) {
  auto& failures = context->failures[deployment.object.key()];
  ++failures;
  const auto pause = problem.lasting ? Duration{longest_pause} : pause_after(failures);
  set_condition(context, deployment, kube::ConditionStatus::yes, problem.reason, problem.message);
  context->reporter.event(deployment.object, kube::EventType::warning, problem.reason, problem.message);
  context->reporter.touch();
  deployment.slot.reset();
  auto error = phase::Error::network(problem.message);
  error.retry_after = pause;
  return phase::failed(std::move(error));
}

ReconcileState retry(const phase::Written& written) {
  auto error = written.error;
  if (error.message.empty()) error.message = "the ClusterDeployment was changed meanwhile";
  error.kind = phase::ErrorKind::network;
  if (!error.retry_after) error.retry_after = std::chrono::seconds{1};
  return phase::failed(std::move(error));
}

Awaitable<std::optional<ReconcileState>> annotate(Context& context, Deployment& deployment, Stage stage,
                                                  const std::string& relocator, const std::string& destination) {
  auto changed = deployment.object.json();
  auto wanted = annotations_for(stage, relocator, true);
  if (!destination.empty()) wanted[names::relocating_to] = destination;
  if (!apply_annotations(changed, wanted)) co_return std::nullopt;
  auto patch = annotation_patch(std::move(wanted));
  const auto written = co_await context->controller->patch(deployment, std::move(patch));
  if (written.outcome == phase::Written::Outcome::written) co_return std::nullopt;
  co_return retry(written);
}

Awaitable<kube::Result<std::optional<Object>>> find_zone(kube::Api& source, const Object& deployment) {
  const auto key = child_zone(deployment);
  if (!key) co_return std::optional<Object>{};
  auto zone = co_await source.get(ocm::dns_zones, *key);
  if (zone) co_return std::optional<Object>{*zone};
  if (is_absent(zone.error(), key->name)) co_return std::optional<Object>{};
  co_return zone.error();
}

bool is_annotated(const Object& zone, Stage stage, const std::string& relocator) {
  auto object = zone.json();
  return !apply_annotations(object, annotations_for(stage, relocator, false));
}

Awaitable<kube::Result<bool>> annotate_zone(Context& context, Deployment& deployment, Stage stage,
                                            const std::string& relocator) {
  const auto zone = child_zone(deployment.object);
  if (!zone) co_return false;
  const auto wanted = annotations_for(stage, relocator, false);
  const kube::Mutation mutate = [&](json::object& object) { return apply_annotations(object, wanted); };
  auto edited = co_await kube::edit(context->source, ocm::dns_zones, *zone, mutate);
  if (!edited && is_absent(edited.error(), zone->name)) {
    context.log().info("the ClusterDeployment has no DNSZone", {{"zone", kube::to_string(*zone)}});
    co_return false;
  }
  if (!edited) co_return edited.error();
  co_return true;
}

void declare(Definition& definition) {
  using namespace phases;
  definition.initial = matching;
  definition.terminals = {{idle, phase::Ending::success}, {gone, phase::Ending::success}};
  definition.normal = {{matching, checking},  {checking, marking}, {marking, copying},   {copying, finishing},
                       {finishing, deleting}, {deleting, gone},    {aborting, matching}, {releasing, matching}};
  // No error is fatal: what cannot be done now is retried, and the annotations say where to continue.
  definition.fatal = [](const phase::Error&) { return false; };
  definition.error = {{matching, idle},      {checking, matching}, {marking, matching},  {copying, matching},
                      {finishing, matching}, {deleting, idle},     {aborting, matching}, {releasing, matching}};
  definition.forced = {{matching, idle, "no relocator matches, or several do"},
                       {matching, aborting, "it moves, and must not any more"},
                       {checking, matching, "the relocators changed while it waited"},
                       {checking, finishing, "the destination has it"},
                       {aborting, finishing, "the destination has it"}};
  const auto add = [&](const char* phase, const char* description, Handler::Function handler) {
    definition.handlers.emplace(phase, Handler::leaf({.description = description}, std::move(handler)));
  };
  add(matching, "find the relocator", match);
  add(checking, "check source and destination", check);
  add(marking, "pause Hive on the source", mark);
  add(copying, "copy to the destination, the ClusterDeployment last", copy_all);
  add(finishing, "annotate it as relocated", finish);
  add(deleting, "delete it from the source", remove_from_source);
  add(aborting, "undo, unless the destination has it", abort_move);
  add(releasing, "let Hive work on the destination", release);
}

const phase::DefinitionBase& phase_definition() {
  static const auto made = [] {
    auto definition = std::make_unique<Definition>();
    declare(*definition);
    definition->fetch_resource = [](Services&, Key) -> Awaitable<phase::Result<std::optional<Deployment>>> {
      co_return std::optional<Deployment>{};
    };
    definition->persist_status = [](Services&, Deployment&) -> Awaitable<phase::Written> {
      co_return phase::Written::gone();
    };
    definition->normalize();
    return definition;
  }();
  return *made;
}

}  // namespace hubferry::relocator
