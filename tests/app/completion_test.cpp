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
    line_.add("swim", "do it alone").add_text(harbour_, "harbour", "HUB", "Where to.");
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

  /// A boat that knows two harbours, for scripts that ask for names; the start of a command line that finds it.
  std::string with_boat() {
    const auto boat =
        directory_.write("boat", "#!/bin/sh\n[ \"$1 $2\" = 'complete hubs' ] && printf 'hamburg\\nhanau\\n'\n");
    std::filesystem::permissions(boat, std::filesystem::perms::owner_all);
    return "cd " + directory_.path().string() + " && export HOME=$PWD PATH=\"$PWD:$PATH\" && ";
  }
  static bool is_installed(const std::string& shell) {
    test::Process found{{"sh", "-c", "command -v " + shell}};
    return found.wait() == 0;
  }
  /// What fish offers for this line.
  std::vector<std::string> fish_offers(const std::string& line) {
    directory_.write("boat.fish", fish_completion(line_));
    test::Process fish{
        {"sh", "-c", with_boat() + "exec fish --no-config -c 'source boat.fish; complete -C \"" + line + "\"'"}};
    EXPECT_EQ(fish.wait(), 0) << fish.err();
    EXPECT_THAT(fish.err(), IsEmpty());
    std::istringstream lines{fish.out()};
    std::vector<std::string> result;
    for (std::string text; std::getline(lines, text);)
      if (!text.empty()) result.push_back(text.substr(0, text.find('\t')));
    return result;
  }
  /// What zsh has on the screen after the line and two tabs, at least until `awaited` is there.
  std::string zsh_screen(const std::string& line, const std::string& awaited) {
    directory_.write("_boat", zsh_completion(line_));
    const auto script = directory_.write("drive", R"(zmodload zsh/zpty
read_until() {
  local out= chunk
  for ((n = 0; n < 400; ++n)); do
    if zpty -r -t z chunk; then out+=$chunk; else sleep 0.05; fi
    [[ $out == *$1* ]] && break
  done
  print -r -- "$out"
}
zpty -b z zsh -f -i
zpty -w z 'PROMPT=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; stty cols 200; echo rea""dy'
read_until ready > /dev/null
zpty -n -w z "$1"$'\t\t'
read_until "$2"
zpty -d z
)");
    test::Process zsh{{"sh", "-c", with_boat() + "exec zsh -f drive \"$0\" \"$1\"", line, awaited}};
    EXPECT_EQ(zsh.wait(), 0) << zsh.err();
    return zsh.out();
  }

  test::TemporaryDirectory directory_;
  bool fast_ = false;
  std::string side_ = "left";
  std::string map_;
  std::string harbour_;
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

TEST_F(CompletionTest, FishItselfOffersThem) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(fish_offers("boat fe"), ElementsAre("ferry"));
  EXPECT_THAT(fish_offers("boat ferry --fa"), ElementsAre("--fast"));
  EXPECT_THAT(fish_offers("boat ferry --side "), UnorderedElementsAre("left", "right"));
  EXPECT_THAT(fish_offers("boat ferry e"), ElementsAre("elbe"));
  EXPECT_THAT(fish_offers("boat swim --harbour ha"), UnorderedElementsAre("hamburg", "hanau"));
  EXPECT_THAT(fish_offers("boat swim --fa"), IsEmpty());
}

TEST_F(CompletionTest, ZshItselfOffersThem) {
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(zsh_screen("boat fe", "ferry"), HasSubstr("ferry"));
  EXPECT_THAT(zsh_screen("boat ferry --side ", "right"), HasSubstr("right"));
  EXPECT_THAT(zsh_screen("boat swim --harbour ha", "hanau"), HasSubstr("hanau"));
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
