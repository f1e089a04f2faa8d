// Whatever a person makes of a ledger's ConfigMap is read as a ledger of its clusters, and of nothing else; and written
// back it says the same.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "migration/ledger.hpp"

namespace {

using namespace hubferry::migration;

constexpr std::array keys{"all-clusters", "success",  "failure", "failure-details", "rolled-back", "undone",
                          "unverified",   "released", "cleaned", "waiting",         "left-behind"};

/// A line for each key.
json::object data_of(std::string_view text) {
  json::object data;
  for (const auto* key : keys) {
    const auto end = text.find('\n');
    data[key] = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return data;
}

bool is_listed(const Ledger& ledger, const std::string& name) {
  return ledger.all.empty() || std::ranges::binary_search(ledger.all, name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto ledger = ledger_from_data(data_of({reinterpret_cast<const char*>(data), size}));
  for (const auto* list :
       {&ledger.success, &ledger.rolled_back, &ledger.undone, &ledger.unverified, &ledger.released, &ledger.cleaned})
    for (const auto& name : *list)
      if (!is_listed(ledger, name)) std::abort();
  for (const auto& [name, failure] : ledger.failures)
    if (!is_listed(ledger, name) || ledger.success.contains(name)) std::abort();
  // Abbreviated, a large one says less.
  const auto written = to_data(ledger);
  if (!(ledger_from_data(to_data(ledger_from_data(written))) == ledger_from_data(written))) std::abort();
  return 0;
}
