#include "obs/http_message.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace hubferry::obs {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool decode_into(std::string& out, std::string_view text, bool plus_is_space) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return false;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return true;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Takes the part before `separator` off the front.
std::string_view take_part(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const auto part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return trim(part);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

/// "q=0.5" -> 0.5. A weight that cannot be read counts as none at all.
double parse_weight(std::string_view text) {
  double weight = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), weight, std::chars_format::fixed);
  const bool readable = ec == std::errc{} && end == text.data() + text.size() && std::isfinite(weight);
  return readable ? std::clamp(weight, 0.0, 1.0) : 0;
}

std::string_view name_of(std::string_view parameter) {
  return trim(parameter.substr(0, parameter.find('=')));
}

std::string_view value_of(std::string_view parameter) {
  const auto equals = parameter.find('=');
  if (equals == std::string_view::npos) return {};
  auto value = trim(parameter.substr(equals + 1));
  if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) value = value.substr(1, value.size() - 2);
  return value;
}

/// How closely an entry's media range names `type`: 0 not at all.
int closeness(std::string_view range, std::string_view type) {
  if (equal_ignoring_case(range, type)) return 3;
  if (range == "*/*" || range == "*") return 1;
  const auto slash = type.find('/');
  return range.ends_with("/*") && equal_ignoring_case(range.substr(0, range.size() - 2), type.substr(0, slash)) ? 2 : 0;
}

}  // namespace

std::optional<HttpRequest> parse_target(std::string_view target) {
  // A proxy's form: the authority is of no interest to a server that has one name only.
  const auto scheme = target.substr(0, target.find("://"));
  const bool has_authority =
      scheme.size() < target.size() && (equal_ignoring_case(scheme, "http") || equal_ignoring_case(scheme, "https"));
  if (has_authority) {
    target.remove_prefix(scheme.size() + 3);
    target.remove_prefix(std::min(target.size(), target.find_first_of("/?#")));
  }
  target = target.substr(0, target.find('#'));
  if (!has_authority && !target.starts_with('/')) return std::nullopt;
  HttpRequest request;
  const auto question = target.find('?');
  if (!decode_into(request.path, target.substr(0, question), false)) return std::nullopt;
  if (request.path.empty()) request.path = "/";
  if (question == std::string_view::npos) return request;
  auto rest = target.substr(question + 1);
  while (!rest.empty()) {
    const auto parameter = take_part(rest, '&');
    if (parameter.empty()) continue;
    const auto equals = parameter.find('=');
    auto& [name, value] = request.query.emplace_back();
    const auto raw_value = equals == std::string_view::npos ? std::string_view() : parameter.substr(equals + 1);
    if (!decode_into(name, parameter.substr(0, equals), true) || !decode_into(value, raw_value, true))
      return std::nullopt;
  }
  return request;
}

double media_quality(std::string_view accept, std::string_view type, std::string_view parameter) {
  int closest = 0;
  double quality = 0;
  while (!accept.empty()) {
    auto entry = take_part(accept, ',');
    int close = closeness(take_part(entry, ';'), type);
    double weight = 1;
    while (!entry.empty()) {
      const auto one = take_part(entry, ';');
      if (equal_ignoring_case(name_of(one), "q"))
        weight = parse_weight(value_of(one));
      else if (!parameter.empty() && equal_ignoring_case(name_of(one), name_of(parameter)))
        close = equal_ignoring_case(value_of(one), value_of(parameter)) && close > 0 ? close + 1 : 0;
    }
    if (close > closest || (close == closest && close > 0 && weight > quality)) {
      closest = close;
      quality = weight;
    }
  }
  return quality;
}

bool accepts_gzip(std::string_view accept_encoding) {
  return media_quality(accept_encoding, "gzip", "") > 0;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string http_date(async::WallTime time) {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time - day)};
  char text[40];
  std::snprintf(text, sizeof text, "%s, %02u %s %04d %02d:%02d:%02d GMT", days[std::chrono::weekday{day}.c_encoding()],
                static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
                static_cast<int>(date.year()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()));
  return text;
}

std::string response_head(const HttpResponse& response, HeadOptions options, async::WallTime now,
                          const HttpHeaders& more) {
  std::string head = options.http10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  head += std::to_string(response.status);
  (head += ' ') += reason_phrase(response.status);
  head += "\r\nDate: " + http_date(now);
  head += "\r\nContent-Type: " + response.content_type;
  if (options.has_length) head += "\r\nContent-Length: " + std::to_string(response.body.size());
  head += "\r\nCache-Control: no-cache, private\r\nX-Content-Type-Options: nosniff\r\nVary: Accept, Accept-Encoding";
  if (options.gzipped) head += "\r\nContent-Encoding: gzip";
  if (response.status == 405) head += "\r\nAllow: GET, HEAD";
  if (!options.keep_alive)
    head += "\r\nConnection: close";
  else if (options.http10)
    head += "\r\nConnection: keep-alive";
  for (const auto& [name, value] : more) head += "\r\n" + name + ": " + value;
  head += "\r\n\r\n";
  return head;
}

namespace {

// Metrics are repetitive: the fastest level already makes them a tenth, and the loop waits for it.
constexpr int level = Z_BEST_SPEED;
constexpr int window_bits = 15 + 16;  // + 16: a gzip header instead of zlib's
constexpr int memory_level = 8;

}  // namespace

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, window_bits, memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot start");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("zlib failed");
  return packed;
}

bool HttpRequest::has_query(const std::string& name) const {
  return std::any_of(query.begin(), query.end(), [&](const auto& parameter) { return parameter.first == name; });
}

std::vector<std::string> HttpRequest::query_values(const std::string& name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : query)
    if (key == name) values.push_back(value);
  return values;
}

HttpResponse HttpResponse::not_found(const std::string& hint) {
  return {.status = 404, .body = "not found: " + hint + "\n"};
}

}  // namespace hubferry::obs
