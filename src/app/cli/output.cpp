#include "app/cli/output.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/json/serialize.hpp>
#include <boost/system/system_error.hpp>
#include <charconv>
#include <csignal>
#include <initializer_list>
#include <ostream>

namespace hubferry::app {

namespace json = kube::json;

namespace {

// Global, as a signal handler is.
std::atomic<bool> sigpipe_received{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

/// As people write numbers: Boost would write 1.2E3.
std::string scalar_json(const json::value& value) {
  if (!value.is_double()) return json::serialize(value);
  std::array<char, 400> text{};  // the largest double has 309 digits
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value.get_double(), std::chars_format::fixed).ptr;
  return {text.data(), end};
}

void write_json(const json::value& value, const std::string& margin, std::string& out) {
  const std::string deeper = margin + "  ";
  std::string separator = "\n";
  if (value.is_object() && !value.get_object().empty()) {
    out += "{";
    for (const auto& [key, field] : value.get_object()) {
      out += separator + deeper + json::serialize(json::value(key)) + ": ";
      write_json(field, deeper, out);
      separator = ",\n";
    }
    out += "\n" + margin + "}";
  } else if (value.is_array() && !value.get_array().empty()) {
    out += "[";
    for (const auto& item : value.get_array()) {
      out += separator + deeper;
      write_json(item, deeper, out);
      separator = ",\n";
    }
    out += "\n" + margin + "]";
  } else {
    out += scalar_json(value);
  }
}

void write_json_line(const json::value& value, std::string& out) {
  std::string separator;
  if (value.is_object()) {
    out += "{";
    for (const auto& [key, field] : value.get_object()) {
      out += separator + json::serialize(json::value(key)) + ":";
      write_json_line(field, out);
      separator = ",";
    }
    out += "}";
  } else if (value.is_array()) {
    out += "[";
    for (const auto& item : value.get_array()) {
      out += separator;
      write_json_line(item, out);
      separator = ",";
    }
    out += "]";
  } else {
    out += scalar_json(value);
  }
}

/// The fields `first` in that order, then the others in theirs, then `last`.
json::object reordered(const json::object& from, std::initializer_list<const char*> first, const char* last = "") {
  json::object result;
  for (const auto* name : first)
    if (const auto* field = from.if_contains(name)) result[name] = *field;
  for (const auto& [name, field] : from)
    if (!result.contains(name) && name != last) result[name] = field;
  if (const auto* field = from.if_contains(last)) result[last] = *field;
  return result;
}

bool is_yaml_keyword(std::string_view text) {
  constexpr std::array<std::string_view, 9> words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower{text};
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// True if every YAML parser reads the unquoted text as a string.
bool is_plain(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  const auto is_harmless = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ' ' || c == ',' || c == '(' ||
           c == ')' || c == ';' || c == '=' || c == '+';
  };
  return !text.empty() && is_letter(text.front()) && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), is_harmless) && !is_yaml_keyword(text);
}

std::string scalar(const json::value& value) {
  if (value.is_string() && is_plain(std::string_view{value.get_string()})) return std::string{value.get_string()};
  if (value.is_object()) return "{}";
  if (value.is_array()) return "[]";
  return scalar_json(value);  // a JSON string is a YAML string in double quotes
}

std::string key_text(std::string_view key) {
  return is_plain(key) ? std::string{key} : json::serialize(json::value(json::string_view{key.data(), key.size()}));
}

bool is_block(const json::value& value) {
  return (value.is_object() && !value.get_object().empty()) || (value.is_array() && !value.get_array().empty());
}

/// `inline_first`: the first line continues the current one, after "- ".
void write_yaml(const json::value& value, std::size_t indent, bool inline_first, std::string& out) {
  const std::string margin(indent, ' ');
  const auto begin_line = [&] {
    if (!inline_first) out += margin;
    inline_first = false;
  };
  if (value.is_object() && !value.get_object().empty()) {
    for (const auto& [key, field] : value.get_object()) {
      begin_line();
      out += key_text(key) + ":";
      if (!is_block(field)) {
        out += " " + scalar(field) + "\n";
        continue;
      }
      out += "\n";
      write_yaml(field, field.is_array() ? indent : indent + 2, false, out);
    }
  } else if (value.is_array() && !value.get_array().empty()) {
    for (const auto& item : value.get_array()) {
      begin_line();
      out += "- ";
      if (is_block(item))
        write_yaml(item, indent + 2, true, out);
      else
        out += scalar(item) + "\n";
    }
  } else {
    begin_line();
    out += scalar(value) + "\n";
  }
}

}  // namespace

std::string to_json_line(const json::value& value) {
  std::string out;
  write_json_line(value, out);
  return out + "\n";
}

std::string to_indented_json(const json::value& value) {
  std::string out;
  write_json(value, "", out);
  return out + "\n";
}

json::object in_usual_order(const json::object& object) {
  auto result = reordered(object, {"apiVersion", "kind", "metadata", "spec"}, "status");
  if (auto* metadata = result.if_contains("metadata"); metadata != nullptr && metadata->is_object())
    *metadata = reordered(metadata->get_object(), {"name", "namespace", "labels", "annotations"});
  if (auto* items = result.if_contains("items"); items != nullptr && items->is_array())
    for (auto& item : items->get_array())
      if (item.is_object()) item = in_usual_order(item.get_object());
  return result;
}

std::string to_yaml(const json::value& value) {
  std::string out;
  write_yaml(value, 0, false, out);
  return out;
}

void record_sigpipe() {
  struct sigaction action{};
  action.sa_handler = [](int) { sigpipe_received = true; };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

bool received_sigpipe() {
  return sigpipe_received;
}

void flush(std::ostream& out) {
  if (!out.flush()) throw OutputClosed{};
}

std::string message_of(const std::exception& error) {
  const std::string text = error.what();
  const bool has_location = dynamic_cast<const boost::system::system_error*>(&error) != nullptr;
  return has_location ? text.substr(0, text.find(" [")) : text;
}

async::Awaitable<> watch_for_closed_output(async::Clock& clock, int fd) {
  for (;;) {
    co_await clock.sleep_for(std::chrono::seconds{1});
    pollfd asked{.fd = fd, .events = 0, .revents = 0};
    if (::poll(&asked, 1, 0) == 1 && (asked.revents & POLLERR) != 0) {
      sigpipe_received = true;
      throw OutputClosed{};
    }
  }
}

}  // namespace hubferry::app
