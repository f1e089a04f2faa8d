#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "app/commands.hpp"
#include "app/flag_values.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

boost::json::string_view view(std::string_view text) {
  return {text.data(), text.size()};
}

void print_json(std::ostream& out) {
  const auto& build = obs::build_info();
  const boost::json::object object{{"version", view(build.version)},
                                   {"revision", view(build.revision)},
                                   {"compiler", view(build.compiler)},
                                   {"platform", view(build.platform)}};
  out << boost::json::serialize(object) << "\n";
}

void print_text(std::ostream& out) {
  const auto& build = obs::build_info();
  out << "hubferry " << build.version << " (" << build.revision << ", " << build.compiler << ", " << build.platform
      << ")\n";
}

}  // namespace

void add_version_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("version", "print which hubferry this is");
  const auto format = std::make_shared<std::string>("text");
  command.add({.name = "output",
               .placeholder = "FORMAT",
               .help = "text or json.",
               .default_text = *format,
               .apply = [format](const std::string& text) { *format = parse_choice(text, {"text", "json"}); },
               .short_name = "o"});
  command.example("hubferry version -o json", "for scripts");
  command.on_run([format, &out] {
    (*format == "json" ? print_json : print_text)(out);
    return 0;
  });
}

}  // namespace hubferry::app
