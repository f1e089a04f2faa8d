#include "app/carried_file.hpp"

#include <fstream>
#include <sstream>

#include "hubferry/kube/config.hpp"

namespace hubferry::app {

void add_carried_resources_flag(Command& command, std::string& file) {
  command.add_text(file, "carried-resources", "FILE",
                   "What moves with a cluster beside what always does: a list carriedResources, as README shows it. "
                   "Read at the start.");
}

std::shared_ptr<const hubagent::CarriedResources> read_carried_resources(const std::string& file) {
  if (file.empty()) return nullptr;
  std::ifstream in{file};
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw kube::ConfigError("cannot read " + file + " (--carried-resources)");
  return std::make_shared<const hubagent::CarriedResources>(hubagent::parse_carried_resources(text.str(), file));
}

}  // namespace hubferry::app
