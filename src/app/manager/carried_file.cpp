#include "app/manager/carried_file.hpp"

#include "app/cli/input_file.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::app {

void add_carried_resources_flag(Command& command, std::string& file) {
  command.add_text(file, "carried-resources", "FILE",
                   "What moves with a cluster beside what always does: a list carriedResources, as README shows it. "
                   "Read at the start.");
}

std::shared_ptr<const hubagent::CarriedResources> read_carried_resources(const std::string& file) {
  if (file.empty()) return nullptr;
  std::string text;
  try {
    text = read_file(file);
  } catch (const std::runtime_error& error) {
    throw kube::ConfigError(std::string{error.what()} + " (--carried-resources)");
  }
  return std::make_shared<const hubagent::CarriedResources>(hubagent::parse_carried_resources(text, file));
}

}  // namespace hubferry::app
