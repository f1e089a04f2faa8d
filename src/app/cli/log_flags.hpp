#pragma once

#include "app/cli/command.hpp"
#include "hubferry/obs/log_sink.hpp"

namespace hubferry::app {

/// --log-level and --log-format, as every command that runs for long has them.
struct LogFlags {
  obs::Level level = obs::Level::info;
  obs::LogFormat format = obs::LogFormat::json;

  void add_to(Command& command);
  /// Logs go to standard error, coloured where that is a terminal and NO_COLOR is not set.
  [[nodiscard]] obs::LogSink::Options sink_options() const;
};

}  // namespace hubferry::app
