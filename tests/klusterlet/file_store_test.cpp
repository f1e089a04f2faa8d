#include "hubferry/klusterlet/file_store.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::klusterlet::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;

unsigned mode_of(const fs::path& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream{file} << text;
}

std::string read(const fs::path& file) {
  std::ifstream stream{file};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

class FileStoreTest : public testing::Test {
 protected:
  static fs::path written(const fs::path& file, const std::string& text) {
    write(file, text);
    return file;
  }

  static HubSecret secret(const std::string& mark) {
    return {.kubeconfig = "kubeconfig " + mark,
            .certificate = "certificate " + mark,
            .key = obs::Secret{"key " + mark},
            .cluster_name = "cluster1",
            .agent_name = "agent1"};
  }

  async::VirtualLoop loop_;
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  hubferry::test::TemporaryDirectory directory_;
  fs::path root_ = directory_.path();
  fs::path bootstrap1_ = written(root_ / "hub1.kubeconfig", "one");
  fs::path bootstrap2_ = written(root_ / "hub2.kubeconfig", "two");
  fs::path hub_ = root_ / "state" / "hub";
  FileStore store_{hub_, {bootstrap1_, bootstrap2_}, env_};
};

TEST_F(FileStoreTest, NothingIsCreatedBeforeItIsNeeded) {
  EXPECT_FALSE(fs::exists(hub_));
  EXPECT_EQ(store_.read(), std::nullopt);
  EXPECT_FALSE(fs::exists(hub_));
}

TEST_F(FileStoreTest, SavedFilesAreReadableForTheirOwnerOnly) {
  store_.write(secret("a"));
  EXPECT_EQ(store_.read(), secret("a"));
  EXPECT_EQ(mode_of(hub_), 0700U);
  for (const auto* key : {"kubeconfig", "tls.crt", "tls.key", "cluster-name", "agent-name"})
    EXPECT_EQ(mode_of(hub_ / key), 0600U) << key;
  EXPECT_EQ(read(hub_ / "tls.key"), "key a");
}

TEST_F(FileStoreTest, ANewVersionReplacesTheOldOneAsAWhole) {
  store_.write(secret("a"));
  const auto version = fs::read_symlink(hub_ / "..data");
  store_.write(secret("b"));
  EXPECT_EQ(store_.read(), secret("b"));
  EXPECT_NE(fs::read_symlink(hub_ / "..data"), version) << "one link switches all files";
  EXPECT_EQ(fs::read_symlink(hub_ / "tls.crt"), fs::path{"..data"} / "tls.crt");
  EXPECT_FALSE(fs::exists(hub_ / version)) << "old keys are deleted";
}

TEST_F(FileStoreTest, AnUnfinishedVersionIsIgnoredAfterACrash) {
  store_.write(secret("a"));
  fs::create_directory(hub_ / "..version-unfinished");
  write(hub_ / "..version-unfinished" / "kubeconfig", "half");
  EXPECT_EQ(store_.read(), secret("a"));
  store_.write(secret("b"));
  EXPECT_FALSE(fs::exists(hub_ / "..version-unfinished"));
}

TEST_F(FileStoreTest, LeftoversOfACrashAreRemovedAtTheStart) {
  {
    FileStore before{hub_, {bootstrap1_}, env_};
    before.write(secret("a"));
  }
  fs::create_directory(hub_ / "..version-unfinished");
  write(hub_ / "..version-unfinished" / "tls.key", "half a key");
  fs::create_symlink("..version-unfinished", hub_ / "..data_tmp");
  store_.prepare();
  EXPECT_FALSE(fs::exists(hub_ / "..version-unfinished"));
  EXPECT_FALSE(fs::is_symlink(hub_ / "..data_tmp"));
  EXPECT_EQ(store_.read(), secret("a"));
}

TEST_F(FileStoreTest, ASecondAgentCannotLockTheDirectoryWhileTheFirstRuns) {
  FileStore second{hub_, {bootstrap1_}, env_};
  {
    FileStore first{hub_, {bootstrap1_}, env_};
    first.prepare();
    try {
      second.prepare();
      FAIL() << "both use " << hub_;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("in use by another agent"));
      EXPECT_THAT(error.what(), HasSubstr(hub_.string()));
    }
  }
  EXPECT_NO_THROW(second.prepare());
}

// Otherwise an agent that lost its credential would come back with another name.
TEST_F(FileStoreTest, NamesAreKeptWithoutAKubeconfigToo) {
  store_.prepare();
  write(hub_ / "cluster-name", "cluster1");
  const auto kept = store_.read();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->cluster_name, "cluster1");
}

TEST_F(FileStoreTest, FilesOfAnotherAgentAreTakenOver) {
  store_.prepare();
  write(hub_ / "kubeconfig", "kubeconfig x");
  write(hub_ / "tls.crt", "certificate x");
  write(hub_ / "tls.key", "key x");
  write(hub_ / "cluster-name", "cluster1");
  write(hub_ / "agent-name", "agent1");
  EXPECT_EQ(store_.read(), secret("x"));
  store_.write(secret("y"));
  EXPECT_EQ(store_.read(), secret("y"));
  EXPECT_TRUE(fs::is_symlink(hub_ / "kubeconfig"));
}

TEST_F(FileStoreTest, AnUnusableDirectoryIsReported) {
  write(root_ / "file", "");
  FileStore inside{root_ / "file" / "hub", {bootstrap1_}, env_};
  EXPECT_THROW(inside.prepare(), std::runtime_error);
  FileStore instead{root_ / "file", {bootstrap1_}, env_};
  EXPECT_THROW(instead.prepare(), std::runtime_error);
  const auto saved = loop_.run(instead.save(secret("a")));
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, testing::Not(HasSubstr("key a")));
}

TEST_F(FileStoreTest, AnEditedBootstrapFileIsNoticed) {
  async::TaskScope scope{loop_.executor()};
  scope.spawn(store_.run());
  loop_.run_for(1min);
  EXPECT_EQ(store_.version(), 0U);
  write(bootstrap2_, "other");
  loop_.run_for(10s);
  EXPECT_EQ(store_.version(), 1U);
  EXPECT_EQ(store_.bootstraps()[1].kubeconfig.reveal(), "other");
  fs::remove(bootstrap2_);
  loop_.run_for(10s);
  EXPECT_EQ(store_.bootstraps()[1].kubeconfig.reveal(), "other") << "a file that is being replaced is ignored";
  scope.stop();
  loop_.run(scope.join());
}

TEST_F(FileStoreTest, AMissingBootstrapFileIsNamed) {
  const FileStore store{hub_, {root_ / "nowhere", bootstrap1_}, env_};
  const auto list = store.bootstraps();
  ASSERT_EQ(list.size(), 2U);
  try {
    static_cast<void>(list[0].parse());
    FAIL() << "it cannot be read";
  } catch (const kube::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nowhere"));
  }
}

}  // namespace
}  // namespace hubferry::klusterlet::test
