#include "hubagent/listed_configs.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubagent/hub_wide_rights.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Fewer clusters are read one by one.
constexpr std::size_t fewest_copies = 10;
/// A list may return that many for each one that is copied.
constexpr std::size_t most_configs_for_one = 8;
constexpr int configs_in_page = 500;
constexpr auto configs_lifetime = std::chrono::seconds{30};
constexpr auto pause_without_list = std::chrono::minutes{1};

/// Keeps the JSON; empty: it is being deleted.
class TextDecoder final : public kube::Decoder {
 public:
  [[nodiscard]] kube::Result<kube::Decoded> from_bytes(std::string_view bytes) const override {
    return as_text(kube::object_decoder().from_bytes(bytes));
  }
  [[nodiscard]] kube::Result<kube::Decoded> from_object(const kube::Object& object) const override {
    return as_text(kube::object_decoder().from_object(object));
  }

 private:
  static kube::Result<kube::Decoded> as_text(kube::Result<kube::Decoded> decoded) {
    if (!decoded || decoded->object == nullptr) return decoded;
    const auto& object = *static_cast<const kube::Object*>(decoded->object.get());
    auto text = object.is_being_deleted() ? std::string{} : kube::json::serialize(object.json());
    decoded->object = std::make_shared<const std::string>(std::move(text));
    return decoded;
  }
};

}  // namespace

bool ListedConfigs::is_known() const {
  return texts_ && hub_.env().clock.now() < until_;
}

bool ListedConfigs::is_worth_it() const {
  return wanted_ >= fewest_copies && wanted_ * most_configs_for_one >= hub_.clusters().size() &&
         hub_.env().clock.now() >= not_before_;
}

async::Awaitable<> ListedConfigs::list() {
  static const TextDecoder decoder;
  const Turn::Asking asking{turn_};
  auto& clock = hub_.env().clock;
  const auto begun = clock.now();
  not_before_ = begun + pause_without_list;
  const bool may_list = co_await hub_.rights().may("list", ocm::klusterlet_addon_configs);
  if (!may_list) co_return;
  Texts texts;
  kube::ListOptions options;
  options.limit = configs_in_page;
  do {
    auto page = co_await hub_.api().list(ocm::klusterlet_addon_configs, options, decoder);
    if (!page) co_return;
    for (const auto& item : page->items) {
      // One that cannot be decoded must not count as absent.
      if (item.object == nullptr) co_return;
      if (item.key.name == item.key.ns) texts.emplace(item.key.ns, *static_cast<const std::string*>(item.object.get()));
    }
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  texts_ = std::move(texts);
  until_ = begun + configs_lifetime;
  not_before_ = {};
}

async::Awaitable<std::optional<ListedConfigs::Answer>> ListedConfigs::of(std::string cluster) {
  while (!is_known()) {
    if (!is_worth_it() && !turn_.taken()) co_return std::nullopt;
    if (turn_.taken())
      co_await turn_.wait();
    else
      co_await list();
  }
  const auto found = texts_->find(cluster);
  if (found == texts_->end() || found->second.empty()) co_return Answer{};
  co_return Answer{kube::Object{kube::json::parse(found->second).as_object()}};
}

}  // namespace hubferry::hubagent
