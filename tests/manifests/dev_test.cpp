#include <gmock/gmock.h>

#include <filesystem>

#include "manifest_files.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using testing::HasSubstr;

// In a directory of its own: what it takes for right must not format or build the checkout.
TEST(DevScript, AUsageErrorIsReportedBeforeAnythingRuns) {
  TemporaryDirectory directory;
  const auto dev = directory.file("dev");
  std::filesystem::copy_file(source_root() / "dev", dev);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"biuld"}, "unknown command 'biuld'"},
      {{"build", "--sanitize=lint"}, "--sanitize takes address or thread, not 'lint'"},
      {{"build", "--sanitize="}, "--sanitize takes address or thread, not ''"},
      {{"test", "--sanitize=fuzz"}, "--sanitize takes address or thread, not 'fuzz'"},
      {{"test", "Watch", "Cache"}, "test: one pattern only, not 'Watch' and 'Cache'"},
      {{"test", "--optimized", "--sanitize=address"}, "test: --optimized and --sanitize are builds of their own"},
      {{"test", "--repeat=often"}, "--repeat takes a number, not 'often'"},
      {{"fuzz", "soon"}, "fuzz takes a number of seconds, not 'soon'"},
      {{"fuzz", "0"}, "fuzz takes a number of seconds, not '0'"},
      {{"fuzz", "1", "2"}, "fuzz: unknown argument '2'"},
      {{"worlds", "--seed", "1"}, "worlds: unknown argument '--seed'"},
      {{"fmt", "src/app"}, "fmt: unknown argument 'src/app'"},
      {{"package", "--fast"}, "package: unknown argument '--fast'"},
      {{"lint", "--fix"}, "lint: unknown argument '--fix'"},
      {{"setup", "build"}, "setup: unknown argument 'build'"},
  };
  for (const auto& [arguments, expected] : mistakes) {
    std::vector<std::string> command{dev};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Process process{command};
    EXPECT_EQ(process.wait(), 2) << expected;
    EXPECT_THAT(process.err(), HasSubstr("dev: " + expected));
  }
}

}  // namespace
}  // namespace hubferry::test
