#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "hubferry/phase/handler.hpp"

namespace hubferry::phase {

/// The outcome of a status write.
struct Written {
  enum class Outcome {
    written,    // the resource now holds what the store answered
    conflict,   // another writer was faster: read again, decide again
    ambiguous,  // it may or may not have been applied: read again. The error may say why
    gone,       // the resource no longer exists
    failed,     // see error
  };
  Outcome outcome = Outcome::written;
  Error error;

  static Written ok() { return {}; }
  static Written conflict() { return {Outcome::conflict, {}}; }
  static Written ambiguous(Error error = {}) { return {Outcome::ambiguous, std::move(error)}; }
  static Written gone() { return {Outcome::gone, {}}; }
  static Written failed(Error error) { return {Outcome::failed, std::move(error)}; }
};

/// A definition that cannot work; what() lists every problem and its phase, one per line.
class DefinitionError : public std::invalid_argument {
 public:
  explicit DefinitionError(std::vector<std::string> problems);
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

/// Everything that defines one machine, without the types of services and resource: what the engine sees.
/// Implement Definition or fill a DefaultDefinition; this is their common base.
class DefinitionBase {
 public:
  using ErasedResource = std::unique_ptr<void, void (*)(void*)>;  // null: gone

  virtual ~DefinitionBase() = default;

  [[nodiscard]] virtual const Tables& tables() const = 0;
  /// The phase's root handler; nullptr if it has none.
  [[nodiscard]] virtual const HandlerNode* handler_for(const Phase& phase) const = 0;
  /// By default network errors are not fatal, all others are.
  [[nodiscard]] virtual bool is_fatal(const Error& error) const { return error.kind != ErrorKind::network; }
  /// How long to wait before a handler that is not done, or failed without being fatal, is entered again.
  [[nodiscard]] virtual async::Duration requeue_delay() const { return std::chrono::seconds{5}; }
  /// Composites with more components than this keep a summary, not one entry per component.
  [[nodiscard]] virtual std::size_t component_limit() const { return 64; }
  /// Where a run leads, by `next` or the tables. The result's own phase: it stays there.
  [[nodiscard]] virtual Phase next_phase(const ReconcileState& result) const;

  /// Throws DefinitionError unless this definition can work.
  void check() const;

  virtual Awaitable<Result<ErasedResource>> erased_fetch(void* services, Key key, bool fresh) = 0;
  virtual Awaitable<Written> erased_persist(void* services, void* resource) = 0;
  virtual Awaitable<Written> erased_claim(void* services, void* resource) = 0;
  [[nodiscard]] virtual bool erased_is_claimed(const void* resource) const = 0;
  [[nodiscard]] virtual Phase erased_phase(const void* resource) const = 0;
  virtual void erased_set_phase(void* resource, const Phase& phase) = 0;
  [[nodiscard]] virtual State erased_state(const void* resource, const Phase& phase) const = 0;
  virtual void erased_set_state(void* resource, const Phase& phase, const State& state) = 0;
  [[nodiscard]] virtual bool erased_is_modified(const void* resource) const = 0;
  [[nodiscard]] virtual bool erased_is_same(const void* one, const void* other) const = 0;
  virtual void erased_carry_over(void* fresh, const void* mine) = 0;
  [[nodiscard]] virtual ErasedResource erased_copy(const void* resource) const = 0;
  virtual void erased_assign(void* resource, void* from) = 0;
  [[nodiscard]] virtual std::optional<Phase> erased_resumption(const void* resource) const = 0;
  virtual void erased_prepare_resumption(void* services, void* resource, const Phase& to, async::WallTime now) = 0;

 protected:
  /// Problems beyond those of tables and handlers.
  virtual void find_problems(std::vector<std::string>&) const {}
};

/// Walks all handlers of all phases, parents before their components. `depth` is 0 for a root.
void for_each_handler(
    const DefinitionBase& definition,
    const std::function<void(const Phase& phase, const HandlerNode& handler, std::size_t depth)>& visit);

/// The interface to implement for full control; DefaultDefinition is the usual choice.
/// Executor: everything runs on the loop of the machine's caller. The functions without Awaitable must not block.
template <typename Services, typename Resource>
class Definition : public DefinitionBase {
 public:
  /// Reads the resource; nullopt: it is gone, or no longer to be reconciled. May read from a cache unless `fresh`,
  /// which is set after a write conflict and after an ambiguous write.
  virtual Awaitable<Result<std::optional<Resource>>> fetch(Services& services, Key key, bool fresh) = 0;
  /// Writes the status with the version that was read as a precondition. On success, updates the resource to the
  /// stored version.
  virtual Awaitable<Written> persist(Services& services, Resource& resource) = 0;
  /// Records in the status that this process works on the resource, before any handler runs: from then on the writes of
  /// a deposed leader fail. `written`, without a write, where there is nothing to record.
  virtual Awaitable<Written> claim(Services&, Resource&) { co_return Written::ok(); }
  /// False if another process has written to the resource: results at hand must not be put on top of that.
  [[nodiscard]] virtual bool is_claimed(const Resource&) const { return true; }
  [[nodiscard]] virtual Phase phase(const Resource& resource) const = 0;
  virtual void set_phase(Resource& resource, const Phase& phase) = 0;
  [[nodiscard]] virtual State state(const Resource& resource, const Phase& phase) const = 0;
  /// An empty State removes the entry.
  virtual void set_state(Resource& resource, const Phase& phase, const State& state) = 0;

  /// True if a handler has changed the status since it was read. By default handlers report that by `updated`.
  [[nodiscard]] virtual bool is_modified(const Resource&) const { return false; }
  /// True if both are the same object, not two of the same name.
  [[nodiscard]] virtual bool is_same(const Resource&, const Resource&) const { return true; }
  /// Re-applies what handlers changed in `mine`, besides phase and State, to a fresh copy.
  virtual void carry_over(Resource&, const Resource&) {}

  /// The phase to which an ended machine returns because its resource asks for more; nullopt: it stays ended. Only
  /// along a transition of tables().resumed.
  [[nodiscard]] virtual std::optional<Phase> resumption(const Resource&) const { return std::nullopt; }
  /// Resets in the status what would keep the phase `to` from starting afresh. Phase and State of `to` are the engine's
  /// business. Called before each attempt to write: must be safe to repeat.
  virtual void prepare_resumption(Services&, Resource&, const Phase&, async::WallTime) {}

 private:
  static void destroy(void* resource) { delete static_cast<Resource*>(resource); }
  static Resource& cast(void* resource) { return *static_cast<Resource*>(resource); }
  static const Resource& cast(const void* resource) { return *static_cast<const Resource*>(resource); }

  Awaitable<Result<ErasedResource>> erased_fetch(void* services, Key key, bool fresh) final {
    auto fetched = co_await fetch(*static_cast<Services*>(services), std::move(key), fresh);
    if (!fetched) co_return std::move(fetched).error();
    if (!*fetched) co_return ErasedResource{nullptr, destroy};
    co_return ErasedResource{new Resource(std::move(**fetched)), destroy};
  }
  [[nodiscard]] ErasedResource erased_copy(const void* resource) const final {
    return {new Resource(cast(resource)), destroy};
  }
  void erased_assign(void* resource, void* from) final { cast(resource) = std::move(cast(from)); }
  Awaitable<Written> erased_persist(void* services, void* resource) final {
    return persist(*static_cast<Services*>(services), cast(resource));
  }
  Awaitable<Written> erased_claim(void* services, void* resource) final {
    return claim(*static_cast<Services*>(services), cast(resource));
  }
  [[nodiscard]] bool erased_is_claimed(const void* resource) const final { return is_claimed(cast(resource)); }
  [[nodiscard]] Phase erased_phase(const void* resource) const final { return phase(cast(resource)); }
  void erased_set_phase(void* resource, const Phase& to) final { set_phase(cast(resource), to); }
  [[nodiscard]] State erased_state(const void* resource, const Phase& of) const final {
    return state(cast(resource), of);
  }
  void erased_set_state(void* resource, const Phase& of, const State& state) final {
    set_state(cast(resource), of, state);
  }
  [[nodiscard]] bool erased_is_modified(const void* resource) const final { return is_modified(cast(resource)); }
  [[nodiscard]] bool erased_is_same(const void* one, const void* other) const final {
    return is_same(cast(one), cast(other));
  }
  void erased_carry_over(void* fresh, const void* mine) final { carry_over(cast(fresh), cast(mine)); }
  [[nodiscard]] std::optional<Phase> erased_resumption(const void* resource) const final {
    return resumption(cast(resource));
  }
  void erased_prepare_resumption(void* services, void* resource, const Phase& to, async::WallTime now) final {
    prepare_resumption(*static_cast<Services*>(services), cast(resource), to, now);
  }
};

/// Names the roots after their phases unless they have a name.
void name_roots(std::map<Phase, HandlerNode>& handlers);

}  // namespace hubferry::phase
