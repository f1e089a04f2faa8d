#include "hubferry/klusterlet/file_store.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "klusterlet_test.hpp"
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
  static std::string kubeconfig(const std::string& server) {
    kube::ClientConfig config;
    config.name = "bootstrap";
    config.server = "https://" + server + ".example";
    config.cluster_name = "hub";
    config.token = "token";
    return kube::to_kubeconfig(config);
  }

  fs::path bootstrap1_ = written(root_ / "hub1.kubeconfig", kubeconfig("one"));
  fs::path bootstrap2_ = written(root_ / "hub2.kubeconfig", kubeconfig("two"));
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
  write(bootstrap2_, kubeconfig("other"));
  loop_.run_for(10s);
  EXPECT_EQ(store_.version(), 1U);
  EXPECT_EQ(store_.bootstraps()[1].kubeconfig.reveal(), kubeconfig("other"));
  scope.stop();
  loop_.run(scope.join());
}

// It is being replaced, or was truncated by a full disk.
TEST_F(FileStoreTest, ABootstrapFileThatIsMissingEmptyOrUnparsableKeepsItsLastContent) {
  async::TaskScope scope{loop_.executor()};
  scope.spawn(store_.run());
  const auto before = store_.bootstraps();
  for (const auto* text : {"", "{ no yaml", "apiVersion: v1"}) {
    write(bootstrap2_, text);
    loop_.run_for(10s);
    EXPECT_EQ(store_.bootstraps()[1].kubeconfig, before[1].kubeconfig) << text;
  }
  fs::remove(bootstrap2_);
  loop_.run_for(10s);
  EXPECT_EQ(store_.bootstraps()[1].kubeconfig, before[1].kubeconfig);
  scope.stop();
  loop_.run(scope.join());
}

// The kubeconfig is there, and a file that it refers to is not: another hub would be selected.
TEST_F(FileStoreTest, AnAuthorityFileThatIsMissingForAWhileKeepsTheLastContent) {
  const auto ca = written(root_ / "ca.crt", make_ca());
  write(bootstrap2_, R"({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u"}}],
    "clusters": [{"name": "h", "cluster": {"server": "https://two.example", "certificate-authority": "ca.crt"}}],
    "users": [{"name": "u", "user": {"token": "t"}}]})");
  FileStore store{hub_, {bootstrap1_, bootstrap2_}, env_};
  async::TaskScope scope{loop_.executor()};
  scope.spawn(store.run());
  const auto before = store.bootstraps();
  fs::remove(ca);
  loop_.run_for(20s);
  EXPECT_EQ(store.version(), 0U);
  EXPECT_EQ(store.bootstraps(), before);
  const auto rotated = make_ca();
  write(ca, rotated);
  loop_.run_for(10s);
  EXPECT_EQ(store.version(), 1U);
  EXPECT_EQ(store.bootstraps()[1].parse().ca_pem, rotated);
  scope.stop();
  loop_.run(scope.join());
}

// The kubeconfig refers to a file, and only that one changes.
TEST_F(FileStoreTest, ARotatedAuthorityFileIsNoticed) {
  const auto ca = written(root_ / "ca.crt", make_ca());
  write(bootstrap2_, R"({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u"}}],
    "clusters": [{"name": "h", "cluster": {"server": "https://two.example", "certificate-authority": "ca.crt"}}],
    "users": [{"name": "u", "user": {"token": "t"}}]})");
  FileStore store{hub_, {bootstrap1_, bootstrap2_}, env_};
  async::TaskScope scope{loop_.executor()};
  scope.spawn(store.run());
  loop_.run_for(10s);
  EXPECT_EQ(store.version(), 0U);
  const auto rotated = make_ca();
  write(ca, rotated);
  loop_.run_for(10s);
  EXPECT_EQ(store.version(), 1U);
  EXPECT_EQ(store.bootstraps()[1].parse().ca_pem, rotated);
  scope.stop();
  loop_.run(scope.join());
}

TEST_F(FileStoreTest, AFailedSaveLeavesNothingBehind) {
  store_.prepare();
  // An obstacle where the link to the new version is made.
  fs::create_directories(hub_ / "..data_tmp" / "obstacle");
  for (int attempt = 0; attempt < 3; ++attempt) EXPECT_FALSE(loop_.run(store_.save(secret("a"))));
  for (const auto& entry : fs::directory_iterator{hub_})
    EXPECT_FALSE(entry.path().filename().string().starts_with("..version-")) << entry.path();
}

// As with `--hub-kubeconfig-dir .`: the user's own kubeconfig must survive.
TEST_F(FileStoreTest, ADirectoryWithFilesOfOthersIsRefusedAndNotTouched) {
  const auto home = root_ / "home";
  fs::create_directory(home);
  fs::permissions(home, fs::perms{0755});
  write(home / "kubeconfig", "the user's own");
  FileStore over_it{home, {bootstrap1_}, env_};
  EXPECT_THROW(over_it.prepare(), std::runtime_error);
  EXPECT_FALSE(loop_.run(over_it.save(secret("a"))));
  EXPECT_EQ(read(home / "kubeconfig"), "the user's own");
  EXPECT_EQ(mode_of(home), 0755U);
  fs::remove(home / "kubeconfig");
  write(home / "notes.txt", "something else");
  try {
    over_it.prepare();
    FAIL() << "others use " << home;
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("notes.txt"));
  }
  EXPECT_EQ(mode_of(home), 0755U);
}

// /tmp of a container is empty, and for everybody.
TEST_F(FileStoreTest, ADirectoryThatAllUsersShareIsRefusedAndNotTouched) {
  const auto shared = root_ / "tmp";
  fs::create_directory(shared);
  fs::permissions(shared, fs::perms{01777});
  FileStore store{shared, {bootstrap1_}, env_};
  EXPECT_THROW(store.prepare(), std::runtime_error);
  EXPECT_FALSE(loop_.run(store.save(secret("a"))));
  EXPECT_EQ(mode_of(shared), 0777U);
  EXPECT_TRUE(fs::is_empty(shared));
}

// A disk with errors: what cannot be read may well be there.
TEST_F(FileStoreTest, ACredentialThatCannotBeReadIsNeitherTakenForMissingNorRemoved) {
  {
    FileStore before{hub_, {bootstrap1_}, env_};
    before.write(secret("a"));
  }
  const auto version = hub_ / fs::read_symlink(hub_ / "..data");
  // Not a link, which is the one error that a test can cause.
  fs::remove(hub_ / "..data");
  fs::create_directory(hub_ / "..data");
  EXPECT_FALSE(loop_.run(store_.load())) << "else the agent would register under another name";
  EXPECT_THROW(store_.prepare(), std::runtime_error);
  EXPECT_EQ(read(version / "tls.key"), "key a");
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

BootstrapConfig sent_hub(const std::string& text) {
  BootstrapConfig hub{"sent", obs::Secret{text}, std::nullopt};
  hub.sent = true;
  return hub;
}

// How hubferry moves a cluster whose agent has its list in files.
TEST_F(FileStoreTest, AListThatAHubSendsIsKeptBesideTheCredential) {
  store_.prepare();
  const auto sent = kubeconfig("three");
  ASSERT_TRUE(loop_.run(store_.put_bootstraps({sent_hub(sent), store_.bootstraps()[0]}, 180s)));
  EXPECT_EQ(store_.version(), 1U);
  const auto expect_sent = [&](const FileStore& store) {
    ASSERT_EQ(store.bootstraps().size(), 2U);
    EXPECT_EQ(store.bootstraps()[0].kubeconfig.reveal(), sent);
    EXPECT_TRUE(store.bootstraps()[0].sent);
    EXPECT_EQ(store.bootstraps()[1].parse().server, "https://one.example");
    EXPECT_EQ(store.connection_timeout(), 180s);
  };
  expect_sent(store_);
  EXPECT_EQ(mode_of(hub_ / "..sent-hubs"), 0600U);
  EXPECT_EQ(read(bootstrap1_), kubeconfig("one")) << "the administrator's files are not touched";
  expect_sent(FileStore{hub_, {bootstrap1_, bootstrap2_}, env_});
}

TEST_F(FileStoreTest, AHubWhoseCredentialWasRenewedIsStillTheAdministrators) {
  store_.prepare();
  auto list = store_.bootstraps();
  list[0].kubeconfig = obs::Secret{kubeconfig("one") + "# renewed"};
  ASSERT_TRUE(loop_.run(store_.put_bootstraps(list, std::nullopt)));
  FileStore again{hub_, {bootstrap1_, bootstrap2_}, env_};
  for (const auto* store : {&store_, &again}) {
    ASSERT_EQ(store->bootstraps().size(), 2U);
    for (const auto& entry : store->bootstraps()) EXPECT_FALSE(entry.sent) << entry.name;
  }
}

TEST_F(FileStoreTest, AnAdministratorWhoConfiguresAnotherHubReplacesWhatAHubSent) {
  store_.prepare();
  ASSERT_TRUE(loop_.run(store_.put_bootstraps({sent_hub(kubeconfig("three"))}, std::nullopt)));
  const auto other = written(root_ / "hub4.kubeconfig", kubeconfig("four"));
  const FileStore store{hub_, {bootstrap1_, other}, env_};
  ASSERT_EQ(store.bootstraps().size(), 2U);
  EXPECT_EQ(store.bootstraps()[1].parse().server, "https://four.example");
}

// A file that is a mounted Secret, whose token is rotated.
TEST_F(FileStoreTest, AFreshTokenInAFileReplacesTheOneThatAHubSent) {
  store_.prepare();
  ASSERT_TRUE(loop_.run(store_.put_bootstraps({sent_hub(kubeconfig("two")), store_.bootstraps()[0]}, std::nullopt)));
  async::TaskScope scope{loop_.executor()};
  scope.spawn(store_.run());
  auto fresh = kubeconfig("two");
  fresh.replace(fresh.rfind("token"), 5, "fresh");
  write(bootstrap2_, fresh);
  loop_.run_for(10s);
  ASSERT_EQ(store_.bootstraps().size(), 2U) << "the list stays";
  EXPECT_EQ(store_.bootstraps()[0].kubeconfig.reveal(), fresh);
  scope.stop();
  loop_.run(scope.join());
}

TEST_F(FileStoreTest, AListThatIsNotOursIsIgnored) {
  store_.prepare();
  for (const auto* text : {"", "{", "[]", "{}", R"({"hubs": [1], "configured": {}})"}) {
    write(hub_ / "..sent-hubs", text);
    EXPECT_EQ((FileStore{hub_, {bootstrap1_, bootstrap2_}, env_}.bootstraps()), store_.bootstraps()) << text;
  }
}

}  // namespace
}  // namespace hubferry::klusterlet::test
