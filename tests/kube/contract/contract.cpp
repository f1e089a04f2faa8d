#include "kube/contract/contract.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"

namespace hubferry::contract {

namespace {

/// How long a case waits for something that should happen soon.
constexpr Duration timeout = std::chrono::seconds{20};

}  // namespace

std::string unique_name(std::string_view prefix) {
  static async::Random random = async::Random::from_entropy();
  return std::string{prefix} + random.suffix(8);
}

const Object& object_of(const Decoded& decoded) {
  return *static_cast<const Object*>(decoded.object.get());
}

const Object& object_of(const WatchEvent& event) {
  return object_of(event.decoded);
}

std::string to_text(const WatchEvent& event) {
  switch (event.type) {
    case WatchEventType::added:
      return "ADDED " + event.decoded.key.name;
    case WatchEventType::modified:
      return "MODIFIED " + event.decoded.key.name;
    case WatchEventType::deleted:
      return "DELETED " + event.decoded.key.name;
    case WatchEventType::bookmark:
      break;
  }
  return "BOOKMARK";
}

Awaitable<Result<std::optional<WatchEvent>>> Watching::next_of_any_type() {
  if (taken_ == pending_.size()) {
    taken_ = 0;
    const auto limit = async::later(clock_.now(), timeout);
    auto events = co_await async::with_deadline(clock_, limit, stream_->next());
    if (!events) co_return events.error();
    pending_ = std::move(*events);
    if (pending_.empty()) co_return std::nullopt;
  }
  co_return pending_[taken_++];
}

Awaitable<WatchEvent> Watching::next() {
  while (true) {
    auto event = co_await next_of_any_type();
    if (!event.value()) throw std::runtime_error("the server ended the watch before the event came");
    if ((*event)->type != WatchEventType::bookmark) co_return **event;
  }
}

async::Clock& KubeContract::clock_of() {
  return world_->env().clock;
}

void KubeContract::run(std::function<Awaitable<>()> body) {
  world_->run(run_in_namespace(std::move(body)));
}

Awaitable<> KubeContract::run_in_namespace(std::function<Awaitable<>()> body) {
  ns_ = unique_name("contract-");
  json::object space{{"metadata", json::object{{"name", ns_}}}};
  auto made = co_await api().create(resources::namespaces, std::move(space));
  made.value();
  std::exception_ptr error;
  try {
    co_await body();
  } catch (...) {
    error = std::current_exception();
  }
  co_await clean_up();
  if (error) std::rethrow_exception(error);
}

Awaitable<> KubeContract::clean_up() {
  for (const auto& [resource, name] : cleanup_) co_await api().remove(resource, name);
  const Key space{{}, ns_};
  co_await api().remove(resources::namespaces, space);
  if (!world_->namespaces_need_help()) co_return;
  // What a namespace controller does last, where there is none.
  Request finalize = request(Verb::update, resources::namespaces, space);
  finalize.subresource = "finalize";
  finalize.body = json::object{{"apiVersion", "v1"},
                               {"kind", "Namespace"},
                               {"metadata", json::object{{"name", ns_}}},
                               {"spec", json::object{{"finalizers", json::array{}}}}};
  co_await api().call(std::move(finalize));
}

json::object KubeContract::config_map(std::string_view name, std::string_view value) const {
  return {{"metadata", json::object{{"namespace", ns_}, {"name", name}}}, {"data", json::object{{"k", value}}}};
}

json::object KubeContract::labelled(std::string_view name, std::string_view label, std::string_view value) const {
  auto object = config_map(name);
  object["metadata"].get_object()["labels"] = json::object{{label, value}};
  return object;
}

Awaitable<Object> KubeContract::make_config_map(std::string name, std::string value) {
  auto made = co_await api().create(resources::config_maps, config_map(name, value));
  co_return made.value();
}

Request KubeContract::request(Verb verb, const Resource& resource, Key key) const {
  Request request;
  request.verb = verb;
  request.resource = resource;
  request.key = std::move(key);
  return request;
}

ListOptions KubeContract::here() const {
  ListOptions options;
  options.ns = ns_;
  return options;
}

Awaitable<std::vector<std::string>> KubeContract::names(ListOptions options) {
  auto all = co_await api().list_all(resources::config_maps, std::move(options));
  std::vector<std::string> found;
  // A real server puts its own certificate into every namespace once a controller manager runs.
  for (const auto& object : all.value())
    if (object.name() != "kube-root-ca.crt") found.emplace_back(object.name());
  co_return found;
}

Awaitable<Result<std::unique_ptr<WatchStream>>> KubeContract::open(const Resource& resource, WatchOptions options) {
  return api().watch(resource, std::move(options), object_decoder());
}

Awaitable<Watching> KubeContract::watch(WatchOptions options) {
  options.ns = ns_;
  if (options.resource_version.empty()) {
    auto page = co_await api().list(resources::config_maps, here(), object_decoder());
    options.resource_version = page.value().resource_version;
  }
  auto stream = co_await open(resources::config_maps, std::move(options));
  co_return Watching{std::move(stream.value()), clock()};
}

Awaitable<std::optional<Error>> KubeContract::watch_error(const Resource& resource, std::string version) {
  WatchOptions options;
  options.ns = ns_;
  options.resource_version = std::move(version);
  auto stream = co_await open(resource, std::move(options));
  if (!stream) co_return stream.error();
  Watching events{std::move(*stream), clock()};
  // Whether the refusal is the answer to the request or the first event of the stream is the server's choice.
  auto first = co_await events.next_of_any_type();
  if (!first) co_return first.error();
  co_return std::nullopt;
}

Awaitable<bool> KubeContract::eventually(std::function<Awaitable<bool>()> done) {
  const auto limit = async::later(clock().now(), timeout);
  while (clock().now() < limit) {
    const bool is_done = co_await done();
    if (is_done) co_return true;
    co_await clock().sleep_for(100ms);
  }
  co_return false;
}

Awaitable<Resource> KubeContract::install_widgets() {
  const std::string group = ns_ + ".example.io";
  const Resource widgets{group, "v1", "widgets", "Widget", true};
  const json::object size{{"type", "integer"}, {"minimum", 1}, {"maximum", 10}};
  const json::object color{{"type", "string"}, {"enum", json::array{"red", "green"}}};
  const json::object code{{"type", "string"}, {"pattern", "^[a-z]+$"}};
  const json::object copies{{"type", "integer"}, {"default", 3}};
  const json::object open_field{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const json::object spec{
      {"type", "object"},
      {"required", json::array{"size"}},
      {"properties",
       json::object{{"size", size}, {"color", color}, {"code", code}, {"copies", copies}, {"open", open_field}}}};
  const json::object schema{{"type", "object"}, {"properties", json::object{{"spec", spec}, {"status", open_field}}}};
  const json::object version{{"name", "v1"},
                             {"served", true},
                             {"storage", true},
                             {"subresources", json::object{{"status", json::object{}}}},
                             {"schema", json::object{{"openAPIV3Schema", schema}}}};
  const json::object kinds{
      {"plural", "widgets"}, {"singular", "widget"}, {"kind", "Widget"}, {"listKind", "WidgetList"}};
  const Key name{{}, "widgets." + group};
  json::object definition{
      {"metadata", json::object{{"name", name.name}}},
      {"spec",
       json::object{{"group", group}, {"scope", "Namespaced"}, {"names", kinds}, {"versions", json::array{version}}}}};
  auto made = co_await api().create(resources::custom_resource_definitions, std::move(definition));
  made.value();
  at_end(resources::custom_resource_definitions, name);
  // Established first, then in discovery, then at its path: a real server takes a moment for each.
  auto served = [&]() -> Awaitable<bool> {
    auto current = co_await api().get(resources::custom_resource_definitions, name);
    if (!is_condition_true(current.value(), "Established")) co_return false;
    auto discovered = co_await api().serves(widgets);
    if (!discovered.value()) co_return false;
    auto page = co_await api().list(widgets, here(), object_decoder());
    co_return page.has_value();
  };
  const bool ready = co_await eventually(served);
  if (!ready) throw std::runtime_error("the new kind is not served in time");
  co_return widgets;
}

json::object KubeContract::widget(std::string_view name, json::object spec) const {
  return {{"metadata", json::object{{"namespace", ns_}, {"name", name}}}, {"spec", std::move(spec)}};
}

}  // namespace hubferry::contract
