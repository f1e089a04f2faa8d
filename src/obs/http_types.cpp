#include "hubferry/obs/http_types.hpp"

#include <algorithm>

namespace hubferry::obs {

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
