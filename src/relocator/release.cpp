#include "relocator/release.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

/// One attempt: longer than a request may take.
constexpr auto release_attempt = std::chrono::seconds{90};
/// Moves that begin now come first, and edits of a relocator often follow each other.
constexpr auto search_delay = std::chrono::seconds{10};

/// True if the annotations of an arrival under that name were there; they are removed, and no others. `source`:
/// confirms the arrival of a copy from this hub, also if a controller of the destination has released it already.
bool release_object(json::object& object, const std::string& relocator, const std::string& source) {
  const auto relocation = relocation_of(object);
  auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
  const bool arrives = relocation.stage == Stage::incoming && relocation.relocator == relocator;
  if (arrives)
    for (const auto& entry : annotations_for(Stage::none, relocator, false)) annotations.erase(entry.key());
  const auto* from = annotations.if_contains(names::relocated_from);
  if (!source.empty() && from != nullptr && *from == json::value(source)) annotations[names::confirmed] = "true";
  return arrives;
}

Awaitable<kube::Result<bool>> release_there(kube::Api& destination, kube::Resource resource, Key key,
                                            std::string relocator, std::string source) {
  bool arrived = false;
  const kube::Mutation mutate = [&](json::object& object) {
    const json::object before = object;
    arrived = release_object(object, relocator, source);
    return object != before;
  };
  auto edited = co_await kube::edit(destination, std::move(resource), std::move(key), mutate);
  if (!edited) co_return edited.error();
  co_return arrived;
}

/// Releases the copy and confirms its arrival in one request, whatever Hive has written to it since it was created:
/// conditional on what it says of its arrival, not on its version. `released`: it is expected to be released already.
json::array arrival_patch(const Object& copy, const std::string& relocator, const std::string& source, bool released) {
  json::array patch;
  const auto add = [&](const char* operation, std::string path, std::optional<std::string> value) {
    json::object entry{{"op", operation}, {"path", path}};
    if (value) entry["value"] = *value;
    patch.push_back(std::move(entry));
  };
  const auto path_of = [](std::string_view annotation) {
    std::string path = "/metadata/annotations/";
    for (const char c : annotation) path += c == '/' ? std::string{"~1"} : std::string{c};
    return path;
  };
  add("test", "/metadata/uid", std::string{copy.uid()});
  if (released) {
    add("test", path_of(names::relocated_from), source);
  } else {
    add("test", path_of(names::relocating), relocator);
    add("test", path_of(names::role), names::incoming);
    // Hive may have removed its own annotation already, and what is not there cannot be removed.
    add("add", path_of(ocm::names::hive_relocate_annotation), "");
    for (const auto* annotation : {names::relocating, names::role, ocm::names::hive_relocate_annotation})
      add("remove", path_of(annotation), std::nullopt);
  }
  add("add", path_of(names::confirmed), "true");
  return patch;
}

/// Nullopt: done, or there is no copy any more.
std::optional<Problem> problem_of(const kube::Resource& resource, const Key& key, const kube::Error& error) {
  if (is_absent(error, key.name)) return std::nullopt;
  return Problem{reasons::move_failed,
                 "releasing " + resource.kind + " " + kube::to_string(key) + ": " + error.describe()};
}

Awaitable<std::optional<Problem>> release_copy(Destination& destination, const Arrival& arrival, std::string source) {
  const Key key = arrival.deployment;
  if (!arrival.copy.uid().empty()) {
    auto patch = arrival_patch(arrival.copy, arrival.relocator, source, destination.releases_copies);
    const auto released = co_await destination.api->json_patch(ocm::cluster_deployments, key, std::move(patch));
    if (released && relocation_of(*released).stage != Stage::incoming) co_return std::nullopt;
  }
  const auto arrived =
      co_await release_there(*destination.api, ocm::cluster_deployments, key, arrival.relocator, source);
  if (!arrived) co_return problem_of(ocm::cluster_deployments, key, arrived.error());
  destination.releases_copies = !*arrived;
  co_return std::nullopt;
}

/// True if it came from that hub under that name, and is not released, or not confirmed: controllers of the destination
/// may release it, but only this hub can confirm.
bool is_unreleased(const Object& copy, const std::string& relocator, const std::string& source) {
  if (copy.annotation(names::relocated_from) != source || copy.is_being_deleted()) return false;
  const auto relocation = relocation_of(copy);
  if (relocation.stage == Stage::incoming) return relocation.relocator == relocator;
  return relocation.stage == Stage::none && copy.annotation(names::confirmed) != "true";
}

}  // namespace

Awaitable<std::optional<Problem>> release_copies(Services& services, Arrival arrival) {
  const auto spec = find_relocator(*services.relocators, arrival.relocator);
  if (!spec) co_return spec.error();
  auto destination = co_await services.destinations.connect(spec->secret);
  if (!destination) co_return destination.error();
  if (!arrival.destination.empty() && arrival.destination != (*destination)->identity)
    co_return Problem{reasons::no_connection, "ClusterRelocator " + arrival.relocator + " leads to another hub now"};
  auto source = co_await services.destinations.source_identity();
  if (!source) co_return source.error();
  const Key zone{arrival.deployment.ns, child_zone_name(arrival.deployment.name)};
  if (arrival.has_zone) {
    auto released = co_await release_there(*(*destination)->api, ocm::dns_zones, zone, arrival.relocator, {});
    if (!released)
      if (auto problem = problem_of(ocm::dns_zones, zone, released.error())) co_return problem;
  }
  co_return co_await release_copy(**destination, arrival, *source);
}

void Releases::expect(Arrival arrival) {
  const Key key = arrival.deployment;
  expected_[key] = std::move(arrival);
}

void Releases::done(const Key& key) {
  expected_.erase(key);
  const auto released = pending_.extract(key);
  if (!released.empty()) report(released.mapped().arrival.relocator);
}

void Releases::gone(const Object& last) {
  auto expected = expected_.extract(last.key());
  if (!expected.empty() && relocation_of(last).stage == Stage::complete)
    add(std::move(expected.mapped()), "it was deleted from the source meanwhile");
}

void Releases::add(Arrival arrival, const std::string& problem) {
  expected_.erase(arrival.deployment);
  auto& pending = pending_[arrival.deployment];
  pending = {std::move(arrival), problem, 1, async::later(services_.env.clock.now(), pause_after(1))};
  report(pending.arrival.relocator);
  changed_.notify();
}

void Releases::restore(const Object& relocator) {
  const auto* left = relocator.find({"status", "unreleased"});
  if (left == nullptr || !left->is_array()) return;
  for (const auto& entry : left->get_array()) {
    if (!entry.is_object()) continue;
    const auto text = [&](const char* field) { return std::string{kube::string_at(entry.get_object(), {field})}; };
    Arrival arrival{{text("namespace"), text("name")}, std::string{relocator.name()}, text("destination"), {}, true};
    if (!arrival.deployment.name.empty()) add(std::move(arrival), "left by a predecessor");
  }
}

bool Releases::is_obsolete(const Arrival& arrival) const {
  if (services_.relocators->get({{}, arrival.relocator}) == nullptr) return true;
  bool returned = false;
  services_.deployments([&](const Object& deployment) {
    returned =
        returned || (deployment.key() == arrival.deployment && relocation_of(deployment).stage != Stage::complete);
  });
  return returned;
}

void Releases::report(const std::string& relocator) {
  std::vector<Unreleased> waiting;
  std::string problem;
  for (const auto& [key, pending] : pending_) {
    if (pending.arrival.relocator != relocator) continue;
    waiting.push_back({key, pending.arrival.destination});
    problem = pending.problem;
  }
  services_.reporter.unreleased(relocator, std::move(waiting), std::move(problem));
}

Awaitable<> Releases::retry(Key key) {
  const auto arrival = pending_.at(key).arrival;
  std::optional<Problem> problem;
  if (!is_obsolete(arrival)) {
    problem = Problem{reasons::no_connection, "the destination does not answer"};
    auto releasing = [&]() -> Awaitable<> { problem = co_await release_copies(services_, arrival); };
    const auto deadline = async::later(services_.env.clock.now(), release_attempt);
    co_await async::before_deadline(services_.env.clock, deadline, releasing());
  } else if (services_.relocators->get({{}, arrival.relocator}) == nullptr) {
    // The status that named it is gone, too: nothing else reports it.
    services_.env.log.warn(
        "releasing a copy given up, its ClusterRelocator is deleted",
        {{"resource", kube::to_string(key)}, {"relocator", arrival.relocator}, {"destination", arrival.destination}});
  }
  // Unless it has been released meanwhile.
  const auto failed = pending_.find(key);
  if (problem && failed != pending_.end()) {
    services_.env.log.warn("releasing a copy failed, retrying",
                           {{"resource", kube::to_string(key)}, {"error", problem->message}});
    auto& mine = failed->second;
    mine.problem = problem->message;
    mine.due = async::later(services_.env.clock.now(), pause_after(++mine.failures));
    // The others of this relocator would fail, too: they wait as long.
    for (auto& [other, pending] : pending_)
      if (pending.arrival.relocator == arrival.relocator) pending.due = std::max(pending.due, mine.due);
  } else if (failed != pending_.end()) {
    pending_.erase(failed);
  }
  report(arrival.relocator);
}

void Releases::look_for_forgotten(const std::string& relocator) {
  searches_[relocator] = {0, async::later(services_.env.clock.now(), search_delay)};
  changed_.notify();
}

Awaitable<std::optional<Problem>> Releases::find_forgotten(std::string relocator) {
  const auto spec = find_relocator(*services_.relocators, relocator);
  if (!spec) co_return std::nullopt;  // when it is there again, it is looked for again
  auto destination = co_await services_.destinations.connect(spec->secret);
  if (!destination) co_return destination.error();
  auto source = co_await services_.destinations.source_identity();
  if (!source) co_return source.error();
  kube::ListOptions page_of;
  do {
    auto page = co_await (*destination)->api->list(ocm::cluster_deployments, page_of, kube::object_decoder());
    if (!page) co_return Problem{reasons::no_connection, page.error().describe()};
    for (const auto& item : page->items) {
      if (item.object == nullptr) continue;
      const auto& copy = *static_cast<const Object*>(item.object.get());
      const Key key = copy.key();
      if (!is_unreleased(copy, relocator, *source) || expected_.contains(key) || pending_.contains(key)) continue;
      // While it is here, its own machine does it. Asked for: this manager may not watch that namespace.
      auto here = co_await services_.source.get(ocm::cluster_deployments, key);
      if (here) continue;
      if (!is_absent(here.error(), key.name)) co_return Problem{reasons::move_failed, here.error().describe()};
      add({key, relocator, (*destination)->identity, {}, true}, "left by a predecessor");
    }
    page_of.continue_token = page->continue_token;
  } while (!page_of.continue_token.empty());
  co_return std::nullopt;
}

Awaitable<> Releases::search(std::string relocator) {
  const auto begun = searches_.at(relocator);
  std::optional<Problem> problem = Problem{reasons::no_connection, "the destination does not answer"};
  auto finding = [&]() -> Awaitable<> { problem = co_await find_forgotten(relocator); };
  const auto deadline = async::later(services_.env.clock.now(), release_attempt);
  co_await async::before_deadline(services_.env.clock, deadline, finding());
  const auto found = searches_.find(relocator);
  if (found == searches_.end() || found->second.due != begun.due) co_return;  // changed meanwhile: once more
  if (!problem) {
    searches_.erase(found);
    co_return;
  }
  services_.env.log.info("looking for copies to be released failed, retrying",
                         {{"relocator", relocator}, {"error", problem->message}});
  found->second.due = async::later(services_.env.clock.now(), pause_after(++found->second.failures));
}

std::optional<async::TimePoint> Releases::next_due() const {
  std::optional<async::TimePoint> next;
  const auto consider = [&](async::TimePoint due) { next = next ? std::min(*next, due) : due; };
  for (const auto& [key, pending] : pending_) consider(pending.due);
  for (const auto& [relocator, search] : searches_) consider(search.due);
  return next;
}

Awaitable<> Releases::run() {
  for (;;) {
    const auto next = next_due();
    if (!next) {
      co_await changed_.wait();
      continue;
    }
    const auto now = services_.env.clock.now();
    if (*next > now) {
      co_await async::before_deadline(services_.env.clock, *next, changed_.wait());
      continue;
    }
    const auto is_due = [&](const auto& entry) { return entry.second.due <= now; };
    if (const auto due = std::ranges::find_if(pending_, is_due); due != pending_.end()) co_await retry(due->first);
    if (const auto due = std::ranges::find_if(searches_, is_due); due != searches_.end()) co_await search(due->first);
  }
}

}  // namespace hubferry::relocator
