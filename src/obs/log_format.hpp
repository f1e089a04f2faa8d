#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "obs/log_target.hpp"

namespace hubferry::obs::detail {

/// Appends one field, as it stands in the middle of a line.
void append_field(std::string& line, LogFormat format, const Field& field);

/// Appends a whole line with its end. Whatever the texts contain, it is one line, and valid UTF-8.
void append_line(std::string& line, const LogTarget::Style& style, Level level, std::string_view name,
                 std::string_view message, std::string_view context_fields, std::initializer_list<Field> fields);

}  // namespace hubferry::obs::detail
