#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/commands/commands.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

boost::json::string_view view(std::string_view text) {
  return {text.data(), text.size()};
}

void print_version_json(std::ostream& out) {
  const auto& build = obs::build_info();
  const boost::json::object object{{"version", view(build.version)},
                                   {"revision", view(build.revision)},
                                   {"compiler", view(build.compiler)},
                                   {"platform", view(build.platform)}};
  out << boost::json::serialize(object) << "\n";
}

void print_version_text(std::ostream& out) {
  const auto& build = obs::build_info();
  out << "hubferry " << build.version << " (" << build.revision << ", " << build.compiler << ", " << build.platform
      << ")\n";
}

}  // namespace

void add_version_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("version", "print the version");
  const auto format = std::make_shared<std::string>("text");
  add_output_flag(command, *format, {"text", "json"}, "Output format: text or json.");
  command.example("hubferry version -o json", "for scripts");
  command.on_run([format, &out] {
    (*format == "json" ? print_version_json : print_version_text)(out);
    return 0;
  });
}

}  // namespace hubferry::app
