#include "hubagent/shared_looks.hpp"

#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// More would cost more than lists of single namespaces.
constexpr int most_objects = 20;

/// How long after another one a list waits for more clusters that ask: all that ask meanwhile share it. The first does
/// not wait. After one that many have shared it waits for longer: then hundreds are processed one after the other.
constexpr auto gathering = std::chrono::milliseconds{20};
constexpr auto gathering_of_many = std::chrono::milliseconds{100};
constexpr std::size_t many_callers = 8;

/// How long lists of the whole hub are left out: where it had more objects, or was in trouble.
constexpr auto pause_if_many = std::chrono::minutes{1};
constexpr auto pause_after_error = std::chrono::seconds{5};

}  // namespace

bool SharedLooks::is_shared(const kube::Resource& resource) {
  return resource.namespaced && (resource == ocm::cluster_deployments || resource == ocm::image_cluster_installs ||
                                 resource == ocm::bare_metal_hosts || resource == ocm::host_firmware_settings ||
                                 resource == ocm::firmware_schemas || resource == ocm::host_firmware_components ||
                                 resource == ocm::data_images || resource == ocm::observability_addons);
}

async::Awaitable<> SharedLooks::look(Kind& kind, kube::Resource resource) {
  const Turn::Asking asking{kind.turn};
  co_await clock_.sleep_until(kind.gathered);
  const auto number = ++kind.started;
  const auto sharing = kind.callers;
  kube::ListOptions options;
  options.label_selector = kind.label_selector;
  options.limit = most_objects;
  auto page = co_await api_.list(resource, options, kube::object_decoder());
  kind.gathered = clock_.now() + (sharing >= many_callers ? gathering_of_many : gathering);
  if (!page) {
    kind.not_before = clock_.now() + pause_after_error;
    co_return;
  }
  auto objects = std::make_shared<Objects>();
  for (const auto& item : page->items)
    if (item.object) objects->push_back(*static_cast<const kube::Object*>(item.object.get()));
  // One that cannot be decoded may be in any namespace.
  if (!page->continue_token.empty() || objects->size() > most_objects || objects->size() != page->items.size()) {
    kind.not_before = clock_.now() + pause_if_many;
    co_return;
  }
  kind.finished = number;
  kind.objects = std::move(objects);
}

async::Awaitable<std::shared_ptr<const SharedLooks::Objects>> SharedLooks::all_on_hub(kube::Resource resource,
                                                                                      std::string label_selector) {
  const bool allowed = co_await rights_.may("list", resource);
  if (!allowed) co_return nullptr;
  std::erase_if(kinds_, [&](const auto& entry) {
    const auto& [name, kind] = entry;
    return kind.callers == 0 && kind.not_before <= clock_.now() && kind.gathered <= clock_.now();
  });
  auto& kind = kinds_[resource.display_name() + " " + label_selector];
  kind.label_selector = std::move(label_selector);
  struct Call {
    Kind& kind;
    explicit Call(Kind& of) : kind(of) { ++kind.callers; }
    ~Call() {
      if (--kind.callers == 0) kind.objects.reset();
    }
  } const call{kind};
  const auto wanted = kind.started + 1;
  while (kind.finished < wanted) {
    if (clock_.now() < kind.not_before) co_return nullptr;
    if (kind.turn.taken())
      co_await kind.turn.wait();
    else
      co_await look(kind, resource);
  }
  co_return kind.objects;
}

}  // namespace hubferry::hubagent
