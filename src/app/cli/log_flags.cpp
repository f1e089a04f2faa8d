#include "app/cli/log_flags.hpp"

#include <unistd.h>

#include <cstdlib>

#include "app/cli/flag_values.hpp"

namespace hubferry::app {

void LogFlags::add_to(Command& command) {
  command.add({.name = "log-level",
               .placeholder = "LEVEL",
               .help = "The least level that is logged: debug, info, warn or error.",
               .default_text = std::string(to_string(level)),
               .apply =
                   [this](const std::string& text) {
                     level = *obs::parse_level(parse_choice(text, {"debug", "info", "warn", "error"}));
                   },
               .short_name = "",
               .choices = {"debug", "info", "warn", "error"}});
  command.add(
      {.name = "log-format",
       .placeholder = "FORMAT",
       .help = "json: one object a line; text: for people.",
       .default_text = std::string(to_string(format)),
       .apply =
           [this](const std::string& text) { format = *obs::parse_log_format(parse_choice(text, {"json", "text"})); },
       .short_name = "",
       .choices = {"json", "text"}});
}

obs::LogSink::Options LogFlags::sink_options() const {
  const char* no_color = std::getenv("NO_COLOR");
  const bool colour_unwanted = no_color != nullptr && *no_color != '\0';
  obs::LogSink::Options options;
  options.format = format;
  options.level = level;
  options.fd = STDERR_FILENO;
  options.colour = isatty(STDERR_FILENO) == 1 && !colour_unwanted;
  return options;
}

}  // namespace hubferry::app
