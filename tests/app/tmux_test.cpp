// What a person sees on a terminal: pictures that change in place and leave no rubbish behind.
#include "tmux.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace hubferry::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string demo(const TemporaryDirectory& directory, const std::string& arguments) {
  return "env TMPDIR=" + directory.path().string() + " " + hubferry_binary() + " demo " + arguments;
}

TEST(OnATerminal, TheDemoShowsOneLinePerMigrationInPlace) {
  TemporaryDirectory directory;
  Tmux terminal{demo(directory, "--clusters 8 --migrations 2"), 150, 40};
  const auto screen = terminal.await_text("Success: 8 of 8 clusters are Available on hub2");
  EXPECT_EQ(count_of(screen, "move-1  Completed"), 1U) << screen;
  EXPECT_EQ(count_of(screen, "[####################] 4/4"), 2U) << screen;
  EXPECT_THAT(screen, AllOf(HasSubstr("0 errors"), HasSubstr("8 of 8 clusters moved"), HasSubstr("MIGRATION  RESULT")));
  EXPECT_THAT(screen, Not(HasSubstr("move-1: Validating"))) << "the log is for pipes";
}

// The window that people have until they enlarge it.
TEST(OnATerminal, TheDemoFitsInto80Columns) {
  TemporaryDirectory directory;
  Tmux terminal{demo(directory, "--clusters 12 --migrations 12 --keep"), 80, 60};
  const auto screen = terminal.await_text("manager.log");
  EXPECT_EQ(count_of(screen, "move-12  Completed     [############] 1/1"), 1U) << screen;
  // Columns are as wide as the times in them.
  EXPECT_THAT(screen,
              testing::ContainsRegex("\nMIGRATION +RESULT +MOVED +BACK +TOOK +VALID +INIT +DEPLOY +REGISTER +CLEAN\n"));
  EXPECT_THAT(screen, AllOf(HasSubstr("12 of 12 clusters moved"), HasSubstr("  export KUBECONFIG=")));
  EXPECT_LT(screen.find("move-2  "), screen.find("move-10  ")) << screen;
  terminal.press("C-c");
  terminal.await_text("[ended with 0]");
}

TEST(OnATerminal, ANarrowWindowBreaksNoLines) {
  TemporaryDirectory directory;
  Tmux terminal{demo(directory, "--clusters 4 --migrations 2 --keep"), 50, 40};
  const auto screen = terminal.await_text("until Ctrl-C");
  EXPECT_EQ(count_of(screen, "clusters moved"), 1U) << screen;
  EXPECT_EQ(count_of(screen, "move-2  Completed"), 1U) << screen;
  terminal.press("C-c");
  terminal.await_text("[ended with 0]");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(OnATerminal, StatusFollowsAMigrationInPlaceAndInColour) {
  TemporaryDirectory directory;
  Process play{{hubferry_binary(), "demo", "--clusters", "3", "--migrations", "1", "--keep"},
               {.environment = {"TMPDIR=" + directory.path().string()}, .error_fd = {}}};
  play.await_output_text("until Ctrl-C");
  const auto config = std::filesystem::directory_iterator(directory.path())->path() / "global.kubeconfig";
  const auto command = hubferry_binary() + " status --watch --kubeconfig " + config.string();
  {
    Tmux terminal{command, 100, 20};
    terminal.await_text("move-1   Completed");
    // The age goes on, in the same line.
    const auto later = terminal.await([](const std::string& seen) {
      return seen.find("3/3") != std::string::npos && seen.find(" 0s ") == std::string::npos;
    });
    EXPECT_EQ(count_of(later, "CLUSTERS"), 1U) << later;
    EXPECT_EQ(count_of(later, "move-1"), 1U) << later;
    EXPECT_THAT(terminal.screen(true), HasSubstr("\x1b[32mCompleted"));
    terminal.press("C-c");
    terminal.await_text("[ended with 0]");
  }
  {
    Tmux terminal{"env NO_COLOR=1 " + command, 100, 20};
    terminal.await_text("move-1   Completed");
    EXPECT_THAT(terminal.screen(true), Not(HasSubstr("\x1b[32m")));
  }
  {
    Tmux terminal{hubferry_binary() + " doctor --kubeconfig " + config.string(), 50, 20};
    EXPECT_THAT(terminal.await_text("[ended with 1]"),
                HasSubstr("- namespace hubferry-system has no Lease of a\n  manager: none has ever led there\n"))
        << "lines break between words";
  }
  play.signal(SIGINT);
  play.wait();
}

}  // namespace
}  // namespace hubferry::test
