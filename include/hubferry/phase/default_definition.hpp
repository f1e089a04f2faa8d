#pragma once

#include <concepts>

#include "hubferry/phase/definition.hpp"

namespace hubferry::phase {

/// A resource whose status has the fields that the framework uses by default.
template <typename Resource>
concept HasStatusFields = requires(Resource resource, const Resource& constant) {
  { constant.status.phase } -> std::convertible_to<Phase>;
  { constant.status.state } -> std::convertible_to<const States&>;
  resource.status.phase = Phase{};
  resource.status.state[Phase{}] = State{};
};

/// A resource with functions for them, such as KubeResource.
template <typename Resource>
concept HasStatusFunctions = requires(Resource resource, const Resource& constant, const Phase& phase) {
  { constant.phase() } -> std::convertible_to<Phase>;
  { constant.state(phase) } -> std::convertible_to<State>;
  resource.set_phase(phase);
  resource.set_state(phase, State{});
};

/// How a machine that has ended resumes: its condition, and what it resets.
template <typename Services, typename Resource>
struct Resumption {
  Phase from;  // terminal
  Phase to;
  std::string when = {};  // for people
  std::function<bool(const Resource&)> wanted;
  /// See Definition::prepare_resumption().
  std::function<void(Services&, Resource&, async::WallTime now)> prepare = {};
};

/// A definition made of functions and tables. Required: fetch, persist, handlers, initial, terminals, normal, error;
/// and the four accessors if the resource has no `status.phase` and `status.state`.
/// Fill it, call normalize(), and do not change it afterwards.
template <typename Services, typename Resource>
class DefaultDefinition final : public Definition<Services, Resource> {
 public:
  using HandlerType = Handler<Services, Resource>;

  // Required.
  std::function<Awaitable<Result<std::optional<Resource>>>(Services&, Key)> fetch_resource;
  std::function<Awaitable<Written>(Services&, Resource&)> persist_status;
  std::map<Phase, HandlerType> handlers;
  Phase initial;
  std::map<Phase, Ending> terminals;
  std::map<Phase, Phase> normal;
  std::map<Phase, Phase> error;

  // Optional.
  std::vector<Jump> forced;                                 // transitions by go_to()
  std::vector<Resumption<Services, Resource>> resumptions;  // of terminal phases: the first wanted one counts
  std::function<Awaitable<Result<std::optional<Resource>>>(Services&, Key)> fetch_fresh;  // fetch_resource
  std::function<Awaitable<Written>(Services&, Resource&)> claim_resource;                 // nothing to record
  std::function<bool(const Resource&)> holds_claim;                                       // always
  std::function<Phase(const Resource&)> get_phase;                                        // status.phase
  std::function<void(Resource&, const Phase&)> put_phase;
  std::function<State(const Resource&, const Phase&)> get_state;  // status.state
  std::function<void(Resource&, const Phase&, const State&)> put_state;
  std::function<bool(const Resource&)> status_modified;                      // only `updated` counts
  std::function<bool(const Resource&, const Resource&)> same_object;         // always
  std::function<void(Resource& fresh, const Resource& mine)> carry_changes;  // phase and State only
  std::function<bool(const Error&)> fatal;                                   // all but network errors
  async::Duration delay = std::chrono::seconds{5};
  std::size_t limit = 64;  // see DefinitionBase::component_limit()

  /// Fills the defaults, names the handlers, and throws DefinitionError if the machine cannot work.
  void normalize() {
    fill_defaults();
    tables_ = Tables{initial, terminals, normal, error, forced, {}};
    for (const auto& resumption : resumptions)
      tables_.resumed.push_back({resumption.from, resumption.to, resumption.when});
    nodes_.clear();
    for (const auto& [phase, handler] : handlers) nodes_.emplace(phase, handler.node());
    name_roots(nodes_);
    this->check();
  }

  [[nodiscard]] const Tables& tables() const override { return tables_; }
  [[nodiscard]] const HandlerNode* handler_for(const Phase& phase) const override {
    const auto found = nodes_.find(phase);
    return found == nodes_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool is_fatal(const Error& failure) const override { return fatal(failure); }
  [[nodiscard]] async::Duration requeue_delay() const override { return delay; }
  [[nodiscard]] std::size_t component_limit() const override { return limit; }

  Awaitable<Result<std::optional<Resource>>> fetch(Services& services, Key key, bool fresh) override {
    return fresh ? fetch_fresh(services, std::move(key)) : fetch_resource(services, std::move(key));
  }
  Awaitable<Written> persist(Services& services, Resource& resource) override {
    return persist_status(services, resource);
  }
  Awaitable<Written> claim(Services& services, Resource& resource) override {
    return claim_resource ? claim_resource(services, resource)
                          : Definition<Services, Resource>::claim(services, resource);
  }
  [[nodiscard]] bool is_claimed(const Resource& resource) const override {
    return !holds_claim || holds_claim(resource);
  }
  [[nodiscard]] Phase phase(const Resource& resource) const override { return get_phase(resource); }
  void set_phase(Resource& resource, const Phase& to) override { put_phase(resource, to); }
  [[nodiscard]] State state(const Resource& resource, const Phase& of) const override {
    return get_state(resource, of);
  }
  void set_state(Resource& resource, const Phase& of, const State& state) override { put_state(resource, of, state); }
  [[nodiscard]] bool is_modified(const Resource& resource) const override {
    return status_modified && status_modified(resource);
  }
  [[nodiscard]] bool is_same(const Resource& one, const Resource& other) const override {
    return !same_object || same_object(one, other);
  }
  void carry_over(Resource& fresh, const Resource& mine) override {
    if (carry_changes) carry_changes(fresh, mine);
  }
  [[nodiscard]] std::optional<Phase> resumption(const Resource& resource) const override {
    if (resumptions.empty()) return std::nullopt;
    const auto from = phase(resource);
    for (const auto& candidate : resumptions)
      if (candidate.from == from && candidate.wanted(resource)) return candidate.to;
    return std::nullopt;
  }
  void prepare_resumption(Services& services, Resource& resource, const Phase& to, async::WallTime now) override {
    const auto from = phase(resource);
    for (const auto& candidate : resumptions)
      if (candidate.from == from && candidate.to == to && candidate.prepare) candidate.prepare(services, resource, now);
  }

 protected:
  void find_problems(std::vector<std::string>& problems) const override {
    if (!fetch_resource) problems.emplace_back("fetch_resource is missing");
    if (!persist_status) problems.emplace_back("persist_status is missing");
    if (!get_phase || !put_phase)
      problems.emplace_back("get_phase and put_phase are missing, and the resource has no status.phase");
    if (!get_state || !put_state)
      problems.emplace_back("get_state and put_state are missing, and the resource has no status.state");
    for (const auto& [phase, handler] : handlers)
      if (!tables_.knows(phase)) problems.push_back("phase '" + phase + "': it has a handler but no transitions");
    for (const auto& resumption : resumptions)
      if (!resumption.wanted)
        problems.push_back("phase '" + resumption.from + "': its resumption has no condition (wanted)");
  }

 private:
  void fill_defaults() {
    if (!fetch_fresh) fetch_fresh = fetch_resource;
    if (!fatal) fatal = [](const Error& failure) { return failure.kind != ErrorKind::network; };
    if constexpr (HasStatusFunctions<Resource>) {
      if (!get_phase) get_phase = [](const Resource& resource) { return resource.phase(); };
      if (!put_phase) put_phase = [](Resource& resource, const Phase& to) { resource.set_phase(to); };
      if (!get_state) get_state = [](const Resource& resource, const Phase& of) { return resource.state(of); };
      if (!put_state) {
        put_state = [](Resource& resource, const Phase& of, const State& state) { resource.set_state(of, state); };
      }
    }
    if constexpr (HasStatusFields<Resource>) {
      if (!get_phase) get_phase = [](const Resource& resource) { return resource.status.phase; };
      if (!put_phase) put_phase = [](Resource& resource, const Phase& to) { resource.status.phase = to; };
      if (!get_state) {
        get_state = [](const Resource& resource, const Phase& of) {
          const auto found = resource.status.state.find(of);
          return found == resource.status.state.end() ? State{} : found->second;
        };
      }
      if (!put_state) {
        put_state = [](Resource& resource, const Phase& of, const State& state) {
          if (state == State{}) {
            resource.status.state.erase(of);
          } else {
            resource.status.state[of] = state;
          }
        };
      }
    }
  }

  Tables tables_;
  std::map<Phase, HandlerNode> nodes_;
};

}  // namespace hubferry::phase
