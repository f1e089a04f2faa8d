#include <algorithm>
#include <array>
#include <cctype>

#include "kube/config/exec_credential.hpp"

namespace hubferry::kube {

namespace {

constexpr std::string_view hidden = "[hidden]";
constexpr std::size_t most_shown = 200;
/// Below this, a value such as "1" or "us" is no secret, and hiding it would only garble the line.
constexpr std::size_t shortest_secret = 6;

std::string_view last_line(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const auto begin = text.find_last_of("\r\n");
  return begin == std::string_view::npos ? text : text.substr(begin + 1);
}

void replace_all(std::string& text, const std::string& what) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + hidden.size()))
    text.replace(at, what.size(), hidden);
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view{"+/_-.~%"}.find(c) != std::string_view::npos;
}

bool names_a_secret(std::string_view word) {
  std::string lower{word};
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array words{"token", "secret", "password", "passwd", "bearer", "basic", "key", "authorization"};
  return std::any_of(words.begin(), words.end(), [&](const char* ending) { return lower.ends_with(ending); });
}

/// Letters in both cases and digits in one long piece: what random bytes look like when written down, and hardly any
/// name or path.
bool looks_random(std::string_view word) {
  std::size_t piece = 0;
  bool lower = false;
  bool upper = false;
  bool digit = false;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0) {
      piece = 0;
      lower = upper = digit = false;
      continue;
    }
    lower |= std::islower(byte) != 0;
    upper |= std::isupper(byte) != 0;
    digit |= std::isdigit(byte) != 0;
    ++piece;
    if (piece >= 16 && digit && (lower || upper) && (piece >= 32 || (lower && upper))) return true;
  }
  return false;
}

/// Goes through the line word by word; what stands between the words is kept.
std::string without_secret_words(std::string_view line) {
  std::string shown;
  bool secret_follows = false;
  while (!line.empty()) {
    const auto length =
        static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_word_character) - line.begin());
    if (length == 0) {
      const char c = line.front();
      shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
      // "token is invalid" is prose, "token: x" and "token=x" hold a value; in "Bearer x" only a space separates it.
      line.remove_prefix(1);
      continue;
    }
    const auto word = line.substr(0, length);
    line.remove_prefix(length);
    const bool hide = secret_follows || word.starts_with("eyJ") || looks_random(word);
    shown += hide ? hidden : word;
    const auto next = line.find_first_not_of(" \"'");
    const bool assigns = next != std::string_view::npos && (line[next] == '=' || line[next] == ':');
    const bool is_scheme = word == "Bearer" || word == "bearer" || word == "Basic" || word == "basic";
    secret_follows = is_scheme || (names_a_secret(word) && assigns);
  }
  return shown;
}

}  // namespace

std::string last_error_line(std::string_view errors, const std::map<std::string, std::string>& environment) {
  std::string line{last_line(errors)};
  for (const auto& [name, value] : environment)
    if (value.size() >= shortest_secret) replace_all(line, value);
  line = without_secret_words(line);
  if (line.size() > most_shown) line.replace(most_shown, std::string::npos, "...");
  return line;
}

}  // namespace hubferry::kube
