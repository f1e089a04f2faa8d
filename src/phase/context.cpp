#include "hubferry/phase/context.hpp"

#include "phase/run_handler.hpp"

namespace hubferry::phase {

async::Clock& RunInfo::clock() const {
  return run_.clock();
}

const obs::Logger& RunInfo::log() const {
  return run_.reconcile.log;
}

const Key& RunInfo::key() const {
  return run_.reconcile.key;
}

const Phase& RunInfo::phase() const {
  return run_.reconcile.phase;
}

const std::string& RunInfo::handler() const {
  return handler_.name();
}

const Phase& RunInfo::successor() const {
  return run_.definition().tables().successor(run_.reconcile.phase);
}

const Phase& RunInfo::error_successor() const {
  return run_.definition().tables().error_successor(run_.reconcile.phase);
}

async::TimePoint RunInfo::deadline() const {
  return run_.deadline;
}

async::Awaitable<> RunInfo::save() const {
  return run_.reconcile.save();
}

}  // namespace hubferry::phase
