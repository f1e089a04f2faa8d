#pragma once

#include <zlib.h>

#include <string>
#include <vector>

#include "support/scripted_server.hpp"

namespace hubferry::test {

/// An API server that misbehaves in one way, in every answer.
struct HostileScript {
  std::string name;  // fit for an object's name
  ScriptedServer::Script script;
};

/// Sends `piece` until the client goes: a client that never does gets 512 MiB.
inline void send_without_end(Session& session, std::string_view piece) {
  for (std::size_t sent = 0; sent < 512UL * 1024 * 1024; sent += piece.size()) session.send(piece);
}

/// About 1 MiB that inflates to 1 GiB of spaces: one block that refers to nothing before it, again and again.
inline std::string compressed_gibibyte() {
  std::string plain(16UL * 1024 * 1024, ' ');
  std::string block(64UL * 1024, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(block.data());
  stream.avail_out = static_cast<uInt>(block.size());
  deflate(&stream, Z_FULL_FLUSH);
  block.resize(stream.total_out);
  deflateEnd(&stream);
  std::string all{"\x1f\x8b\x08\0\0\0\0\0\0\x03", 10};
  for (int count = 0; count < 64; ++count) all += block;
  return all;
}

/// An API server that has nothing, and ends each watch after one event.
inline ScriptedServer::Script brief_watches() {
  return [](Session& session) {
    while (true) {
      const auto request = session.read_request();
      if (request.find("watch=") == std::string::npos) {
        session.reply(200, R"({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})");
        continue;
      }
      session.start_chunked();
      session.chunk(R"({"type": "MODIFIED", "object": {"metadata": {"name": "x", "uid": "u", "resourceVersion": "2"}}})"
                    "\n");
      session.chunk("");
    }
  };
}

/// What a hub may do to the manager. Any of them ended it once, or is known to have ended other clients.
inline std::vector<HostileScript> hostile_scripts() {
  const std::string json = "Content-Type: application/json\r\n";
  const std::string ok = "HTTP/1.1 200 OK\r\n" + json;
  // Each answers all requests of its connection, as far as it gets to that.
  const auto answering = [](std::function<void(Session&)> answer) {
    return [answer = std::move(answer)](Session& session) {
      while (true) {
        session.read_request();
        answer(session);
      }
    };
  };
  const std::string piece(64UL * 1024, ' ');
  return {
      {"length", answering([ok](Session& session) {
         session.send(ok + "Content-Length: 4611686018427387904\r\n\r\n{");
         session.wait_until_gone();
       })},
      {"header", answering([piece](Session& session) {
         session.send("HTTP/1.1 200 OK\r\nX-Filler: a");
         send_without_end(session, std::string(piece.size(), 'a'));
       })},
      {"headers", answering([](Session& session) {
         session.send("HTTP/1.1 200 OK\r\n");
         std::string lines;
         while (lines.size() < 64UL * 1024) lines += "X-Filler: a\r\n";
         send_without_end(session, lines);
       })},
      {"body", answering([piece](Session& session) {
         session.start_chunked();
         for (int sent = 0; sent < 8192; ++sent) session.chunk(piece);
       })},
      {"items", answering([](Session& session) {
         session.start_chunked();
         session.chunk(R"({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [{})");
         std::string items;
         while (items.size() < 64UL * 1024) items += R"(,{"metadata": {"name": "x", "uid": "u"}})";
         for (int sent = 0; sent < 8192; ++sent) session.chunk(items);
       })},
      {"types", answering([](Session& session) {
         session.reply(200, R"({"kind": 7, "apiVersion": [], "metadata": ["x"], "items": {"a": 1}, "spec": "",
                                "status": {"conditions": {"type": null}}, "groups": 1, "resources": [1, null]})");
       })},
      {"depth", answering([](Session& session) { session.reply(200, std::string(200'000, '[')); })},
      {"redirect", answering([json](Session& session) {
         session.reply(302, "{}", json + "Location: https://127.0.0.1:1/api\r\n");
       })},
      {"informational", answering([](Session& session) {
         send_without_end(session, "HTTP/1.1 103 Early Hints\r\nX-Filler: a\r\n\r\n");
       })},
      {"shifted", answering([](Session& session) {
         session.send("HTTP/1.1 103 Early Hints\r\n\r\n");
         session.reply(200, R"({"kind": "Lease", "metadata": {"name": "of-another", "resourceVersion": "1"}})");
       })},
      {"gzip", answering([json, bomb = compressed_gibibyte()](Session& session) {
         session.reply(200, bomb, json + "Content-Encoding: gzip\r\n");
       })},
      {"continue", answering([](Session& session) {
         session.reply(200, R"({"kind": "List", "metadata": {"resourceVersion": "1", "continue": "again"},
                                "items": [{"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}}]})");
       })},
  };
}

}  // namespace hubferry::test
