#pragma once

#include "hubferry/kube/http_api.hpp"

namespace hubferry::klusterlet {

/// How an agent talks to a hub over HTTP.
inline kube::HttpApiOptions client_options(std::string name, std::string user_agent) {
  kube::HttpApiOptions client;
  client.name = std::move(name);
  client.user_agent = std::move(user_agent);
  // The agent retries by itself, and must detect an unreachable hub soon.
  client.request_timeout = std::chrono::seconds{15};
  client.max_retries = 1;
  // As many as a hub is asked at once when it is probed.
  client.max_connections = 8;
  // All that an agent reads is its own: a hub that sends more must not exhaust the managed cluster's memory.
  client.max_answer = 8UL * 1024 * 1024;
  client.max_watch_line = 4UL * 1024 * 1024;
  // Longer than the time between two heartbeats (75 s), so that they need no handshake; below the 90 s after which
  // kube-apiserver closes an idle connection.
  client.idle_connection = std::chrono::seconds{85};
  return client;
}

/// And how to its own cluster, whose lists may be large: 500 Nodes with their images are more than 8 MiB.
inline kube::HttpApiOptions own_client_options(std::string user_agent) {
  auto client = client_options("own", std::move(user_agent));
  client.max_answer = kube::HttpApiOptions{}.max_answer;
  return client;
}

}  // namespace hubferry::klusterlet
