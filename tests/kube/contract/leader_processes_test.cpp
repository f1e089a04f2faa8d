// Leader election between processes, one of which comes to harm, on a real server.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "kube/contract/real_world.hpp"

extern char** environ;

namespace hubferry::contract {
namespace {

constexpr int timeout_ms = 60'000;

/// A process of candidate.cpp. Killed with this object.
class Candidate {
 public:
  Candidate(const std::string& ns, std::string identity) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    std::string kubeconfig = real_kubeconfig();
    std::string space = ns;
    std::string lease = "leader";
    std::string program = CONTRACT_CANDIDATE;
    char* arguments[] = {program.data(), kubeconfig.data(), space.data(), lease.data(), identity.data(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int failure = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    if (failure != 0) throw std::runtime_error("cannot start " + program);
  }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  ~Candidate() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(output_);
  }

  void signal(int number) const { ::kill(pid_, number); }

  /// The next line that it prints; "<nothing>" when it stays silent, "<end>" when it has ended.
  std::string next_line() {
    while (text_.find('\n') == std::string::npos) {
      pollfd waiting{output_, POLLIN, 0};
      if (::poll(&waiting, 1, timeout_ms) <= 0) return "<nothing>";
      char buffer[256];
      const auto got = ::read(output_, buffer, sizeof buffer);
      if (got <= 0) return "<end>";
      text_.append(buffer, static_cast<std::size_t>(got));
    }
    const auto end = text_.find('\n');
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

  /// True while it has printed nothing more.
  bool is_silent() const {
    pollfd waiting{output_, POLLIN, 0};
    return text_.empty() && ::poll(&waiting, 1, 0) == 0;
  }

  int wait_for_exit() {
    int status = 0;
    for (int waited_ms = 0; ::waitpid(pid_, &status, WNOHANG) == 0; waited_ms += 10) {
      if (waited_ms > timeout_ms) {
        ADD_FAILURE() << "the candidate does not end";
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status, 0);
        break;
      }
      ::usleep(10'000);
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  std::string text_;
};

class LeaderProcesses : public testing::Test {
 protected:
  LeaderProcesses() : world_(make_real_world()) {
    auto make_namespace = [&]() -> Awaitable<> {
      json::object space{{"metadata", json::object{{"name", ns_}}}};
      auto made = co_await world_->admin().create(resources::namespaces, std::move(space));
      made.value();
    };
    world_->run(make_namespace());
  }

  std::string holder() {
    std::string found;
    auto read = [&]() -> Awaitable<> {
      const Key key{ns_, "leader"};
      auto lease = co_await world_->admin().get(resources::leases, key);
      found = lease.value().string_at({"spec", "holderIdentity"});
    };
    world_->run(read());
    return found;
  }

  std::string ns_ = unique_name("election-");
  std::unique_ptr<ContractWorld> world_;
};

TEST_F(LeaderProcesses, WhenTheLeaderIsKilledTheOtherTakesOver) {
  Candidate first{ns_, "first"};
  ASSERT_EQ(first.next_line(), "waiting");
  ASSERT_EQ(first.next_line(), "leads 0");
  Candidate second{ns_, "second"};
  ASSERT_EQ(second.next_line(), "waiting");
  EXPECT_TRUE(second.is_silent());
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait_for_exit(), 128 + SIGKILL);
  EXPECT_EQ(second.next_line(), "leads 1");
  EXPECT_EQ(holder(), "second");
}

// Stopped, it cannot even notice that time passes; once continued, it must first end its work.
TEST_F(LeaderProcesses, AFrozenLeaderFindsItselfDeposedAndStops) {
  Candidate first{ns_, "first"};
  ASSERT_EQ(first.next_line(), "waiting");
  ASSERT_EQ(first.next_line(), "leads 0");
  Candidate second{ns_, "second"};
  ASSERT_EQ(second.next_line(), "waiting");
  first.signal(SIGSTOP);
  EXPECT_EQ(second.next_line(), "leads 1");
  first.signal(SIGCONT);
  EXPECT_EQ(first.next_line(), "stopped");
  EXPECT_EQ(first.next_line(), "lost");
  EXPECT_EQ(first.wait_for_exit(), 3);
  EXPECT_EQ(holder(), "second") << "the deposed one must not have touched the Lease";
  EXPECT_TRUE(second.is_silent()) << "the new leader keeps leading";
}

TEST_F(LeaderProcesses, ALeaderThatIsTerminatedStopsItsWorkThenReleases) {
  Candidate first{ns_, "first"};
  ASSERT_EQ(first.next_line(), "waiting");
  ASSERT_EQ(first.next_line(), "leads 0");
  first.signal(SIGTERM);
  EXPECT_EQ(first.next_line(), "stopped");
  EXPECT_EQ(first.next_line(), "released");
  EXPECT_EQ(first.wait_for_exit(), 0);
  EXPECT_EQ(holder(), "");
  Candidate second{ns_, "second"};
  ASSERT_EQ(second.next_line(), "waiting");
  EXPECT_EQ(second.next_line(), "leads 1");
}

}  // namespace
}  // namespace hubferry::contract
