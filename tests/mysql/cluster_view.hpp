#pragma once

#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/obs/log_sink.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::mysql::test {

/// What the API server says about the cluster db/demo: for fixtures with servers in memory, and with real ones.
class ClusterView {
 protected:
  ClusterView(const sim::Server& server, const obs::LogCapture& log) : viewed_(server), log_lines_(log) {}

  [[nodiscard]] kube::Object cluster(const std::string& name = "demo") const {
    return viewed_.object(mysql_clusters, {"db", name}).value_or(kube::Object{});
  }
  [[nodiscard]] std::string phase() const { return std::string{cluster().string_at({"status", "phase"})}; }
  [[nodiscard]] std::string primary() const { return std::string{cluster().string_at({"status", "primary"})}; }
  /// "True HeartbeatOK".
  [[nodiscard]] std::string condition(const char* type) const {
    const auto object = cluster();
    const auto* found = kube::find_condition(object, type);
    if (found == nullptr) return "";
    return std::string{kube::string_at(*found, {"status"})} + " " + std::string{kube::string_at(*found, {"reason"})};
  }
  [[nodiscard]] std::string condition_message(const char* type) const {
    const auto object = cluster();
    const auto* found = kube::find_condition(object, type);
    return found == nullptr ? "" : std::string{kube::string_at(*found, {"message"})};
  }
  [[nodiscard]] bool is_settled() const {
    return phase() == "Running" && condition("PrimaryHealthy") == "True HeartbeatOK" &&
           condition("ReplicasHealthy") == "True Replicating" && !condition("FailoverInProgress").starts_with("True");
  }
  /// The status and the operator's log, for failed tests.
  [[nodiscard]] std::string status_text() const {
    const auto object = cluster();
    const auto* status = object.find({"status"});
    auto text = status == nullptr ? "no status" : boost::json::serialize(*status);
    for (const auto& line : log_lines_.lines()) text += "\n" + line;
    return text;
  }
  [[nodiscard]] std::size_t events(std::string_view reason) const {
    std::size_t count = 0;
    for (const auto& event : viewed_.objects(kube::resources::events))
      count += event.string_at({"reason"}) == reason ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::vector<std::string> event_notes(std::string_view reason) const {
    std::vector<std::string> notes;
    for (const auto& event : viewed_.objects(kube::resources::events))
      if (event.string_at({"reason"}) == reason) notes.emplace_back(event.string_at({"note"}));
    return notes;
  }
  /// The pods behind a Service.
  [[nodiscard]] std::vector<std::string> endpoints(const std::string& service) const {
    std::vector<std::string> pods;
    const auto slice = viewed_.object(kinds::endpoint_slices, {"db", service});
    if (!slice) return pods;
    for (const auto& endpoint : slice->find({"endpoints"})->as_array())
      pods.emplace_back(endpoint.at("targetRef").at("name").as_string());
    return pods;
  }
  [[nodiscard]] std::vector<std::string> writers() const { return endpoints("demo-mysql-write"); }
  [[nodiscard]] std::vector<std::string> readers() const { return endpoints("demo-mysql-read"); }

 private:
  const sim::Server& viewed_;
  const obs::LogCapture& log_lines_;
};

}  // namespace hubferry::mysql::test
