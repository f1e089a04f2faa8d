// The scripts that run in the pods, in a shell of this machine.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "mysql/backup_job.hpp"
#include "mysql/children.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::mysql::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_in(const fs::path& path) {
  std::ifstream file{path};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// restore.sh and start.sh of the ConfigMap, with directories in place of the volumes and stand-ins for what they call.
class ServerScripts : public testing::Test {
 protected:
  int run() { return run("restore.sh", ""); }
  /// As the container of pod demo-1 does.
  int run(const std::string& name, const std::string& output) {
    ClusterSpec spec;
    std::string script{wanted_config({"demo", "db"}, spec).at("data").at(name).as_string()};
    const std::pair<std::string, std::string> paths[] = {
        {"/var/lib/mysql", data.string()}, {"/backup", backup.string()}, {"chown -R mysql:mysql", "true"}};
    for (const auto& [from, to] : paths)
      for (auto at = script.find(from); at != std::string::npos; at = script.find(from, at + to.size()))
        script.replace(at, from.size(), to);
    directory.write(name, script);
    const auto command = "PATH=" + directory.path().string() + ":$PATH HOSTNAME=demo-1 BACKUP=full sh " +
                         (directory.path() / name).string() + " >" + (output.empty() ? "/dev/null" : output) + " 2>&1";
    return std::system(command.c_str());
  }
  void given_program(const std::string& name, const std::string& body) {
    const auto file = directory.write(name, "#!/bin/sh\n" + body + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  void given_copy_back(const std::string& body) { given_program("mariadb-backup", body); }
  ServerScripts() {
    fs::create_directories(data);
    fs::create_directories(backup / "full");
    std::ofstream{backup / "full" / "xtrabackup_binlog_info"} << "binlog.000001 5 0-100-7\n";
  }
  static std::vector<std::string> names_in(const fs::path& path) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator{path}) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

  hubferry::test::TemporaryDirectory directory;
  fs::path data = directory.path() / "data";
  fs::path backup = directory.path() / "backup";
};

TEST_F(ServerScripts, AfterAnInterruptionItBeginsAgainAndNoServerStartsWithHalfOfABackup) {
  given_copy_back("touch " + (data / "ibdata1").string() + "; exit 1");
  EXPECT_NE(run(), 0);
  EXPECT_NE(run(), 0) << "half of a backup is none";
  given_copy_back("[ ! -e " + (data / "ibdata1").string() + " ] && touch " + (data / "ibdata1").string() + " " +
                  (data / "app").string());
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(names_in(data), ElementsAre("app", "hubferry-restored.sql", "ibdata1"));
}

// Of a file system of its own it is root's.
TEST_F(ServerScripts, AfterAnInterruptionItDoesNotLookIntoLostAndFound) {
  fs::create_directories(data / "lost+found" / "inner");
  fs::create_directories(data / "app");
  std::ofstream{data / "app" / "table.ibd"} << "half";
  std::ofstream{data / "hubferry-restoring"} << "";
  given_copy_back("touch " + (data / "ibdata1").string());
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(names_in(data), ElementsAre("hubferry-restored.sql", "ibdata1", "lost+found"));
  EXPECT_THAT(names_in(data / "lost+found"), ElementsAre("inner"));
}

TEST_F(ServerScripts, ADirectoryThatHasDataIsLeftAlone) {
  std::ofstream{data / "ibdata1"} << "data";
  given_copy_back("exit 1");
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(names_in(data), ElementsAre("ibdata1"));
}

// The server may have been killed before it read the file.
TEST_F(ServerScripts, AStartAfterOneThatFailedSetsThePositionOfTheBackupAgain) {
  given_copy_back("touch " + (data / "ibdata1").string());
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(text_in(data / "hubferry-restored.sql"),
            "EXECUTE IMMEDIATE IF(@@global.gtid_binlog_pos = '', 'SET GLOBAL gtid_slave_pos=''0-100-7''', 'DO 0');\n");
  given_program("docker-entrypoint.sh", "exit 1");
  EXPECT_NE(run("start.sh", ""), 0);
  given_program("docker-entrypoint.sh", "echo \"$@\"");
  const auto output = directory.path() / "output";
  EXPECT_EQ(run("start.sh", output.string()), 0);
  EXPECT_THAT(text_in(output), "mariadbd --server-id=101 --report-host=demo-1 --init-file=" +
                                   (data / "hubferry-restored.sql").string() + "\n");
}

/// The script of a backup's Job, with a directory of ours for /backup.
std::string backup_script(const BackupJob& job, const std::string& claim) {
  const auto made = wanted_job(job);
  const auto& container = made.at("spec").at("template").at("spec").at("containers").at(0);
  std::string script{container.at("command").at(2).as_string()};
  for (auto at = script.find("/backup/"); at != std::string::npos; at = script.find("/backup/", at + claim.size()))
    script.replace(at, std::string_view{"/backup"}.size(), claim);
  return script;
}

TEST_F(ServerScripts, ABackupGetsThePasswordAsItIs) {
  BackupJob job;
  job.backup = "nightly";
  const auto made = wanted_job(job);
  std::string variable;
  for (const auto& one : made.at("spec").at("template").at("spec").at("containers").at(0).at("env").as_array())
    if (one.as_object().contains("valueFrom")) variable = one.at("name").as_string();
  EXPECT_EQ(variable, "MYSQL_PWD") << "what the client library reads";
  const auto seen = directory.path() / "seen";
  given_program("mariadb-backup", "echo \"$@\" >>" + seen.string() +
                                      "\nfor option in \"$@\"; do case $option in --target-dir=*) mkdir -p "
                                      "\"${option#*=}\" ;; esac; done\nprintf %s \"$MYSQL_PWD\" >" +
                                      (directory.path() / "password").string());
  directory.write("backup.sh", backup_script(job, backup.string()));
  const std::string password = R"(a\b"c'd #e $(f) %g)";
  ::setenv("MYSQL_PWD", password.c_str(), 1);
  const auto command = "PATH=" + directory.path().string() +
                       ":$PATH SOURCE=10.0.0.1 BACKUP=nightly BACKUP_UID=u KEEP=0 sh " +
                       (directory.path() / "backup.sh").string();
  const int failed = std::system(command.c_str());
  ::unsetenv("MYSQL_PWD");
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(text_in(directory.path() / "password"), password);
  EXPECT_THAT(text_in(seen),
              testing::AllOf(HasSubstr("--backup --user=root --host=10.0.0.1"), testing::Not(HasSubstr("$(f)"))));
  EXPECT_THAT(names_in(backup), ElementsAre("full", "nightly", "nightly.uid"));
}

// Its MySQLBackup was deleted, the backup was not.
TEST_F(ServerScripts, ABackupOfAnotherMySQLBackupWithTheSameNameIsNotReplaced) {
  given_program("mariadb-backup",
                "for option in \"$@\"; do case $option in --target-dir=*) mkdir -p \"${option#*=}\" ;; esac; done");
  directory.write("backup.sh", backup_script({}, backup.string()));
  const auto output = directory.path() / "output";
  const auto attempt = [&](const std::string& uid) {
    const auto command = "PATH=" + directory.path().string() + ":$PATH SOURCE=10.0.0.1 BACKUP=nightly KEEP=0 " +
                         "BACKUP_UID=" + uid + " sh " + (directory.path() / "backup.sh").string() + " 2>" +
                         output.string();
    return std::system(command.c_str());
  };
  ASSERT_EQ(attempt("first"), 0);
  std::ofstream{backup / "nightly" / "ibdata1"} << "data";
  EXPECT_NE(attempt("second"), 0);
  EXPECT_THAT(text_in(output), HasSubstr("nightly"));
  EXPECT_THAT(names_in(backup / "nightly"), ElementsAre("ibdata1"));
  EXPECT_EQ(attempt("first"), 0) << "an attempt whose end nobody saw";
  EXPECT_THAT(names_in(backup / "nightly"), testing::IsEmpty());
}

// The part of the Job's script after the backup.
TEST(Retention, KeepsTheLastOfTheScheduleAndNothingElseGoes) {
  const hubferry::test::TemporaryDirectory directory;
  BackupJob job;
  job.cluster = "demo";
  job.keep = 2;
  std::string script = backup_script(job, directory.path().string());
  const auto begin = script.find("[ \"$KEEP\" -gt 0 ]");
  ASSERT_NE(begin, std::string::npos);
  script = script.substr(begin);
  for (const auto* name : {"demo-203001010300", "demo-203001020300", "demo-203001030300", "demo-by-hand",
                           "demo-203001040300.part", "demo-2-203001010300", "other-203001010300"})
    fs::create_directories(directory.path() / name / "data");
  for (const auto* name : {"demo-203001010300.uid", "demo-203001020300.uid"}) std::ofstream{directory.path() / name};
  const auto keep = "export KEEP=" + std::to_string(job.keep) + " CLUSTER=" + job.cluster + "\n";
  ASSERT_EQ(std::system(("set -eu\n" + keep + script).c_str()), 0);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator{directory.path()}) left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, testing::UnorderedElementsAre("demo-203001020300", "demo-203001020300.uid", "demo-203001030300",
                                                  "demo-by-hand", "demo-203001040300.part", "demo-2-203001010300",
                                                  "other-203001010300"));
}

}  // namespace
}  // namespace hubferry::mysql::test
