#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/kube/object.hpp"
#include "hubferry/kube/projection.hpp"

namespace hubferry::hubagent {

/// What a hub's ManifestWork of a klusterlet says: which version of it the agent has applied, and which Secrets it
/// brings. A few hundred bytes of some ten thousand.
class KlusterletWork {
 public:
  struct Draft;

  explicit KlusterletWork(const Draft& draft);

  [[nodiscard]] std::int64_t generation() const { return generation_; }
  /// The agent has applied this version, or a later one.
  [[nodiscard]] bool is_applied_since(std::int64_t generation) const;
  [[nodiscard]] bool is_applied() const { return is_applied_since(generation_); }
  /// False for a work of which the agent applies nothing, though it reports it as Applied.
  [[nodiscard]] bool delivers() const { return !read_only_; }
  [[nodiscard]] bool brings_secret(const std::string& name) const;
  /// A work agent, which deletes what a work has deployed, has seen it.
  [[nodiscard]] bool has_work_agent() const { return has_work_agent_; }

 private:
  std::int64_t generation_ = 0;
  bool applied_ = false;
  bool read_only_ = false;
  bool has_work_agent_ = false;
  std::optional<std::int64_t> observed_;  // by the condition Applied
  std::vector<std::string> secrets_;
};

const kube::Decoder& klusterlet_work_decoder();

/// Null for null.
std::shared_ptr<const KlusterletWork> klusterlet_work_of(const kube::Object* work);

}  // namespace hubferry::hubagent
