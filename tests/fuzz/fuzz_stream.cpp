// Whatever a server sends must be cut and decoded, or refused: never a crash, and never depending on how the network
// happened to cut the stream. The first byte chooses the chunks' size, the rest is what the server sends.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/decoder.hpp"
#include "hubferry/kube/splitter.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace {

using namespace hubferry;

constexpr std::size_t max_line = 16384;

void require(bool condition) {
  if (!condition) std::abort();
}

bool lies_within(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

/// Reads everything that the projection offers.
void use(const ocm::ManagedCluster& cluster) {
  std::size_t bytes = cluster.name().size() + cluster.uid().size() + cluster.client_url().size();
  cluster.for_each_label([&](std::string_view key, std::string_view value) {
    bytes += value.size();
    require(cluster.label(key).has_value());
  });
  cluster.for_each_condition([&](const ocm::ConditionView& condition) {
    bytes += condition.reason.size();
    require(cluster.condition(condition.type).has_value());
  });
  require(!cluster.has_finalizer("hubferry.io/none") || bytes > 0);
}

void decode(std::string_view object) {
  const auto projected = ocm::managed_cluster_decoder().from_bytes(object);
  if (projected && projected->object) use(*static_cast<const ocm::ManagedCluster*>(projected->object.get()));

  const auto whole = kube::object_decoder().from_bytes(object);
  if (!whole || whole->key.name.empty()) return;
  // What a full parser accepts, the projection accepts too; and in its own words (no key twice, no escapes without
  // need) it finds the same object.
  require(projected.has_value());
  const auto again = ocm::managed_cluster_decoder().from_object(*static_cast<const kube::Object*>(whole->object.get()));
  require(again.has_value() && again->key == whole->key && again->resource_version == whole->resource_version);
}

std::vector<std::string> lines_of(std::string_view stream, std::size_t chunk_size) {
  std::vector<std::string> lines;
  kube::LineSplitter splitter{max_line};
  for (std::size_t at = 0; at < stream.size(); at += chunk_size) {
    const auto fed = splitter.feed(stream.substr(at, chunk_size), [&](std::string_view line) {
      require(!line.empty() && line.size() <= max_line);
      lines.emplace_back(line);
    });
    if (!fed) break;
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream{reinterpret_cast<const char*>(data) + 1, size - 1};

  const auto lines = lines_of(stream, std::size_t{data[0]} + 1);
  require(lines == lines_of(stream, stream.size() + 1));
  for (const auto& line : lines) {
    const auto event = kube::split_watch_event(line);
    if (!event) continue;
    require(lies_within(event->type, line) && lies_within(event->object, line));
    decode(event->object);
  }

  if (const auto list = kube::split_list(stream)) {
    for (const auto item : list->items) {
      require(lies_within(item, stream));
      decode(item);
    }
  }
  decode(stream);
  return 0;
}
