#include "hubferry/phase/context.hpp"

#include "phase/run_handler.hpp"

namespace hubferry::phase {

async::Clock& RunInfo::clock() const {
  return run_.clock;
}

const obs::Logger& RunInfo::log() const {
  return run_.log;
}

const Key& RunInfo::key() const {
  return run_.key;
}

const Phase& RunInfo::phase() const {
  return run_.phase;
}

const std::string& RunInfo::handler() const {
  return handler_.name();
}

const Phase& RunInfo::successor() const {
  return run_.definition.tables().successor(run_.phase);
}

const Phase& RunInfo::error_successor() const {
  return run_.definition.tables().error_successor(run_.phase);
}

async::TimePoint RunInfo::deadline() const {
  return run_.deadline;
}

async::Awaitable<> RunInfo::save() const {
  return run_.saver.save();
}

}  // namespace hubferry::phase
