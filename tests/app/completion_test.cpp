#include "app/cli/command_line.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/commands/commands.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::app {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

/// A boat with one command.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    auto& command = line_.add("ferry", "carry something: quickly");
    command.add_switch(fast_, "fast", "Hurry [or not]; it's up to you.");
    command.add_choice(side_, "side", "s", "SIDE", {"left", "right"}, "Where to land.");
    command.add_text(map_, "map", "FILE", "A map.");
    command.add_argument({.name = "RIVER", .help = "Which one.", .required = false, .apply = {}, .choices = {"elbe"}});
    line_.add("swim", "do it alone");
  }

  /// What bash offers after `boat WORDS…`, of which the last one is being typed.
  std::vector<std::string> offers(const std::string& words, const std::string& script) {
    const auto file = directory_.file("completion");
    std::ofstream{file} << script;
    test::Process bash{{"bash", "-c",
                        "cd " + directory_.path().string() + " && . ./completion && COMP_WORDS=(" + words +
                            ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _${COMP_WORDS[0]} && "
                            "printf '%s\\n' \"${COMPREPLY[@]}\""}};
    EXPECT_EQ(bash.wait(), 0);
    EXPECT_THAT(bash.err(), IsEmpty());
    std::istringstream lines{bash.out()};
    std::vector<std::string> result;
    for (std::string text; std::getline(lines, text);)
      if (!text.empty()) result.push_back(text);
    return result;
  }
  std::vector<std::string> offers(const std::string& words) { return offers(words, bash_completion(line_)); }

  test::TemporaryDirectory directory_;
  bool fast_ = false;
  std::string side_ = "left";
  std::string map_;
  CommandLine line_{"boat", "crosses rivers"};
};

TEST_F(CompletionTest, BashOffersCommandsThenTheirFlags) {
  EXPECT_THAT(offers("boat ''"), UnorderedElementsAre("ferry", "swim", "help", "--help", "--version"));
  EXPECT_THAT(offers("boat fe"), ElementsAre("ferry"));
  EXPECT_THAT(offers("boat help sw"), ElementsAre("swim"));
  EXPECT_THAT(offers("boat ferry --f"), ElementsAre("--fast"));
  EXPECT_THAT(offers("boat swim --f"), IsEmpty());
  EXPECT_THAT(offers("boat ferry --fast ''"), UnorderedElementsAre("--help", "--fast", "--side", "--map", "elbe"));
}

TEST_F(CompletionTest, BashOffersAFlagsChoicesHoweverItIsWritten) {
  EXPECT_THAT(offers("boat ferry --side ''"), ElementsAre("left", "right"));
  EXPECT_THAT(offers("boat ferry -s r"), ElementsAre("right"));
  EXPECT_THAT(offers("boat ferry --side = l"), ElementsAre("left"));
  EXPECT_THAT(offers("boat ferry --side ="), ElementsAre("left", "right"));
  EXPECT_THAT(offers("boat swim --side ''"), Not(Contains("left")));
}

TEST_F(CompletionTest, BashOffersFilesWhereAFileIsWanted) {
  std::ofstream{directory_.file("chart")};
  EXPECT_THAT(offers("boat ferry --map ch"), ElementsAre("chart"));
}

// With the placeholders of the program's own flags: completion depends on them.
TEST_F(CompletionTest, BashOffersDirectoriesAndFormatsForASimulation) {
  std::ostringstream out;
  CommandLine line{"hubferry", ""};
  add_sim_command(line, out);
  const auto script = bash_completion(line);
  std::filesystem::create_directory(directory_.file("charts"));
  std::ofstream{directory_.file("chart")};
  EXPECT_THAT(offers("hubferry sim --kubeconfig-dir ch", script), ElementsAre("charts"));
  EXPECT_THAT(offers("hubferry sim -o ''", script), ElementsAre("text", "json"));
  EXPECT_THAT(zsh_completion(line), HasSubstr(":DIRECTORY:_files -/'"));
}

TEST_F(CompletionTest, ZshSpecificationsEscapeWhatWouldEndThem) {
  const auto script = zsh_completion(line_);
  EXPECT_THAT(script, AllOf(HasSubstr("#compdef boat"), HasSubstr("'ferry:carry something\\: quickly'"),
                            HasSubstr("'--fast[Hurry \\[or not\\]; it'\\''s up to you.]'"),
                            HasSubstr("'--side=[Where to land.]:SIDE:(left right)'"),
                            HasSubstr("'-s[Where to land.]:SIDE:(left right)'"),
                            HasSubstr("'--map=[A map.]:FILE:_files'"), HasSubstr("'1:RIVER:(elbe)'")));
}

TEST_F(CompletionTest, FishOffersCommandsFlagsAndValues) {
  const auto script = fish_completion(line_);
  EXPECT_THAT(script, AllOf(HasSubstr("-n __fish_use_subcommand -a ferry -d 'carry something: quickly'\n"),
                            HasSubstr("-l fast -d 'Hurry [or not]; it\\'s up to you.'\n"),
                            HasSubstr("-l side -s s -x -a 'left right' -d 'Where to land.'\n"),
                            HasSubstr("-l map -r -F -d 'A map.'\n"),
                            HasSubstr("'__fish_seen_subcommand_from ferry' -a 'elbe'\n")));
}

TEST_F(CompletionTest, TheCommandIncludesCommandsAddedAfterIt) {
  std::ostringstream out;
  CommandLine line{"hubferry", ""};
  add_completion_command(line, out);
  add_manager_command(line);
  const ProcessContext context{.out = out, .err = out, .environment = [](const std::string&) { return std::nullopt; }};
  EXPECT_EQ(line.run({"completion", "bash"}, context), 0);
  EXPECT_THAT(offers("hubferry manager --log-level d", out.str()), ElementsAre("debug"));
  EXPECT_THAT(offers("hubferry completion z", out.str()), ElementsAre("zsh"));
  EXPECT_EQ(line.run({"completion", "powershell"}, context), 2);
  EXPECT_EQ(line.run({"completion"}, context), 2);
}

}  // namespace
}  // namespace hubferry::app
