#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "hubferry/kube/base64.hpp"
#include "sim/apiserver/core.hpp"
#include "sim/apiserver/watch.hpp"

namespace hubferry::sim {

namespace {

/// Where a paged list continues, and at which version.
struct Continuation {
  std::int64_t version = 0;
  kube::Key after;
};

std::string encode(const Continuation& from) {
  return kube::encode_base64(json::serialize(
      json::object{{"v", "meta.k8s.io/v1"}, {"rv", from.version}, {"ns", from.after.ns}, {"after", from.after.name}}));
}

std::optional<Continuation> decode(const std::string& token) {
  const auto text = kube::decode_base64(token);
  if (!text) return std::nullopt;
  boost::system::error_code ec;
  const json::value parsed = json::parse(*text, ec);
  const auto* version = ec ? nullptr : kube::find(parsed, {"rv"});
  if (version == nullptr || !version->is_int64()) return std::nullopt;
  const auto& fields = parsed.get_object();
  return Continuation{version->get_int64(),
                      {std::string{kube::string_at(fields, {"ns"})}, std::string{kube::string_at(fields, {"after"})}}};
}

std::optional<std::int64_t> parse_version(std::string_view text) {
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc{} || end != text.data() + text.size() || version < 0) return std::nullopt;
  return version;
}

StatusError bad_version(std::string_view text) {
  return errors::bad_request("resourceVersion: Invalid value: \"" + std::string{text} +
                             "\": must be a valid resource version");
}

StatusError bad_list_options(const std::string& what) {
  return {422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: " + what, {}, {}};
}

StatusError expired_continue() {
  return errors::gone(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list "
      "without the continue parameter.");
}

/// The one object that a field selector names: permissions for only that object then suffice, as in Kubernetes.
std::string name_in(const std::string& field_selector) {
  constexpr std::string_view field = "metadata.name=";
  if (!field_selector.starts_with(field) || field_selector.find(',') != std::string::npos) return {};
  auto name = std::string_view{field_selector}.substr(field.size());
  if (name.starts_with('=')) name.remove_prefix(1);
  return std::string{name};
}

}  // namespace

Outcome<Page> Core::list(const User& user, const kube::Resource& resource, const kube::ListOptions& options,
                         std::int64_t stale_versions) {
  execute_late_requests();
  const auto authorized = authorize(user, "list", resource, {options.ns, name_in(options.field_selector)}, {});
  if (!authorized) return authorized.error();
  const Kind& kind = **authorized;
  if (!kind.stored) return errors::method_not_allowed();
  const auto parsed = ObjectSelector::parse(options.label_selector, options.field_selector, kind);
  if (!parsed) return parsed.error();
  const ObjectSelector& selector = *parsed;

  const std::string asked = options.resource_version.value_or("");
  const auto& match = options.resource_version_match;
  if (!options.continue_token.empty() && !asked.empty() && asked != "0")
    return errors::bad_request("specifying resource version is not allowed when using continue");
  if (!match.empty() && asked.empty())
    return bad_list_options(
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
  if (!match.empty() && match != "Exact" && match != "NotOlderThan")
    return bad_list_options("resourceVersionMatch: Unsupported value: \"" + match +
                            "\": supported values: \"Exact\", \"NotOlderThan\"");
  if (match == "Exact" && asked == "0")
    return bad_list_options(
        "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  const auto wanted = asked.empty() ? std::optional<std::int64_t>{0} : parse_version(asked);
  if (!wanted) return bad_version(asked);
  const auto current = store_.version();
  if (*wanted > current) return errors::too_large_resource_version(*wanted, current);

  const auto& collection = *kind.collection;
  std::int64_t version = current;
  kube::Key after;
  bool continued = false;
  if (!options.continue_token.empty()) {
    const auto continuation = decode(options.continue_token);
    if (!continuation) return errors::bad_request("continue key is not valid: illegal base64 data");
    version = continuation->version;
    after = continuation->after;
    continued = true;
    if (version < collection.floor()) return expired_continue();
  } else if (match == "Exact" || (match.empty() && *wanted > 0 && options.limit > 0)) {
    // With a limit and without resourceVersionMatch, a version means exactly that version: legacy of the real server.
    version = *wanted;
    if (version < collection.floor()) return errors::gone("The resourceVersion for the provided list is too old.");
  } else if (stale_versions > 0 && !asked.empty()) {
    // Without a version it is a quorum read.
    version = std::max({current - stale_versions, collection.floor(), *wanted});
  }
  // Version "0" is answered by the watch cache, which does not page.
  const auto limit = asked == "0" || options.limit <= 0 ? SIZE_MAX : static_cast<std::size_t>(options.limit);

  Page page;
  page.version = version;
  const std::string ns = kind.resource.namespaced ? options.ns : std::string{};
  kube::Key last;
  const auto visit = [&](const kube::Key& key, const kube::Object& object) {
    if (continued && key <= after) return;
    if (!selector.empty() && !selector.matches(object.json())) return;
    if (page.items.size() < limit) {
      page.items.push_back(in_version(kind, object));
      last = key;
    } else {
      ++page.remaining;
    }
  };
  const bool is_current = collection.history().empty() || collection.history().back()->version <= version;
  if (is_current && !selector.only_name().empty() && (!ns.empty() || !kind.resource.namespaced)) {
    const kube::Key key{ns, std::string{selector.only_name()}};
    if (const auto found = collection.entries.find(key); found != collection.entries.end())
      visit(key, found->second.object);
  } else if (is_current) {
    auto at = collection.entries.lower_bound(continued ? after : kube::Key{ns, {}});
    for (; at != collection.entries.end() && (ns.empty() || at->first.ns == ns); ++at)
      visit(at->first, at->second.object);
  } else {
    const auto objects = collection.at_version(ns, version);
    if (!objects) return expired_continue();
    for (const auto& [key, object] : *objects) visit(key, object);
  }
  if (page.remaining > 0) page.continue_token = encode({version, last});
  return page;
}

Outcome<std::unique_ptr<Watch>> Core::watch(const User& user, const kube::Resource& resource,
                                            const kube::WatchOptions& options) {
  execute_late_requests();
  const auto authorized = authorize(user, "watch", resource, {options.ns, name_in(options.field_selector)}, {});
  if (!authorized) return authorized.error();
  const Kind& kind = **authorized;
  if (!kind.stored) return errors::method_not_allowed();
  const std::string ns = kind.resource.namespaced ? options.ns : std::string{};
  auto parsed = ObjectSelector::parse(options.label_selector, options.field_selector, kind);
  if (!parsed) return parsed.error();
  const auto version =
      options.resource_version.empty() ? std::optional<std::int64_t>{0} : parse_version(options.resource_version);
  if (!version) return bad_version(options.resource_version);
  const auto current = store_.version();
  if (*version > current) return errors::too_large_resource_version(*version, current);

  auto& collection = *kind.collection;
  auto buffer = std::make_shared<WatchBuffer>(ns, std::move(*parsed), options_.watch_buffer);
  Watch::Start start;
  start.bookmarks = options.bookmarks;
  // By default between 30 and 60 minutes, so that thousands of watches do not end together.
  start.timeout = options.timeout > async::Duration{0}
                      ? options.timeout
                      : random.between(std::chrono::minutes{30}, std::chrono::minutes{60});
  start.version = current;
  if (options.send_initial_events || *version == 0) {
    const auto offer = [&](const kube::Key&, const Entry& entry) {
      if (buffer->selector().matches(entry.object.json())) start.initial.push_back(in_version(kind, entry.object));
    };
    const kube::Key only{ns, std::string{buffer->selector().only_name()}};
    if (only.name.empty() || (ns.empty() && kind.resource.namespaced))
      collection.visit(ns, offer);
    else if (const auto found = collection.entries.find(only); found != collection.entries.end())
      offer(found->first, found->second);
    start.end_with_bookmark = options.send_initial_events && options.bookmarks;
  } else if (*version < collection.floor()) {
    start.failure = errors::gone("too old resource version: " + options.resource_version + " (" +
                                 std::to_string(collection.floor()) + ")");
  } else {
    const auto& history = collection.history();
    const auto first =
        std::ranges::upper_bound(history, *version, {}, [](const EventPtr& event) { return event->version; });
    for (auto event = first; event != history.end(); ++event) buffer->offer(*event);
  }
  collection.add_watch(buffer);
  return std::make_unique<Watch>(shared_from_this(), kind, std::move(buffer), std::move(start));
}

}  // namespace hubferry::sim
