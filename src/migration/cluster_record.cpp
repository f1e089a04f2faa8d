#include "hubferry/migration/cluster_record.hpp"

#include "migration/ledger.hpp"

namespace hubferry::migration {

std::vector<ClusterRecord> read_clusters(const kube::Object& config_map) {
  const auto* data = config_map.find({"data"});
  if (data == nullptr || !data->is_object()) return {};
  const auto ledger = ledger_from_data(data->get_object());
  std::vector<ClusterRecord> records;
  records.reserve(ledger.all.size());
  for (const auto& name : ledger.all) {
    auto& record = records.emplace_back();
    record.name = name;
    record.arrived = ledger.success.contains(name);
    record.rolled_back = ledger.rolled_back.contains(name);
    if (const auto found = ledger.failures.find(name); found != ledger.failures.end()) {
      record.failed = true;
      record.stage = found->second.stage;
      record.reason = found->second.reason;
      record.message = found->second.message;
    }
    if (const auto found = ledger.waiting.find(name); found != ledger.waiting.end()) record.waiting = found->second;
  }
  return records;
}

}  // namespace hubferry::migration
