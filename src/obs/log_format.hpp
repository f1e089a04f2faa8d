#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "obs/log_target.hpp"

namespace hubferry::obs::detail {

/// Appends one field to those that stand in the middle of every line.
void append_context_field(std::string& fields, LogFormat format, const Field& field);

/// Appends a whole line with its end. Whatever the texts contain, it is one line, valid UTF-8 and, with a dozen fields
/// or so, below 16 KiB.
void append_line(std::string& line, const LogTarget::Style& style, Level level, std::string_view name,
                 std::string_view message, std::string_view context_fields, std::initializer_list<Field> fields);

}  // namespace hubferry::obs::detail
