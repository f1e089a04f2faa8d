#include "app/hubs/hub_check.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

const char* result_text(HubCheck::Result result) {
  switch (result) {
    case HubCheck::Result::ok:
      return "ok";
    case HubCheck::Result::warning:
      return "warning";
    case HubCheck::Result::failed:
      return "failed";
  }
  return "failed";
}

Colour colour_of(HubCheck::Result result) {
  switch (result) {
    case HubCheck::Result::ok:
      return Colour::green;
    case HubCheck::Result::warning:
      return Colour::yellow;
    case HubCheck::Result::failed:
      return Colour::red;
  }
  return Colour::red;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

std::vector<std::string> hub_table(const std::vector<HubSummary>& hubs, const Terminal& terminal) {
  TextTable table{{"HUB", "SECRET", "REACHABLE", "KUBERNETES", "PROBLEM"}};
  for (const auto& [hub, reachable, version, problem] : hubs)
    table.add({hub.name, joined_names(hub.secrets),
               TextTable::Cell{reachable ? "yes" : "no", reachable ? Colour::green : Colour::red}, version, problem});
  return table.lines(terminal);
}

json::array hub_list_json(const std::vector<HubSummary>& hubs) {
  json::array all;
  for (const auto& [hub, reachable, version, problem] : hubs)
    all.push_back(json::object{{"name", hub.name},
                               {"server", hub.config ? hub.config->server : ""},
                               {"secrets", json::array(hub.secrets.begin(), hub.secrets.end())},
                               {"available", hub.available},
                               {"reachable", reachable},
                               {"version", version},
                               {"problem", problem}});
  return all;
}

std::vector<std::string> check_table(const std::vector<HubCheck>& checks, const Terminal& terminal) {
  TextTable table{{"CHECK", "RESULT", "DETAILS"}};
  for (const auto& check : checks)
    table.add({check.name, TextTable::Cell{result_text(check.result), colour_of(check.result)}, check.message});
  return table.lines(terminal);
}

json::object check_json(const std::string& hub, const std::vector<HubCheck>& checks) {
  json::array all;
  for (const auto& [name, result, message] : checks)
    all.push_back(json::object{{"name", name}, {"result", result_text(result)}, {"message", message}});
  return {{"hub", hub}, {"usable", is_usable(checks)}, {"checks", std::move(all)}};
}

}  // namespace hubferry::app
