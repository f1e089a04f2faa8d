#include "app/cli/command_line.hpp"

#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "app/cli/flag_values.hpp"
#include "app/commands/commands.hpp"
#include "app/manager/manager_options.hpp"

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A program with one command of each kind of flag, and what it printed.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    auto& command = line_.add("ferry", "carry something");
    command.describe("Carries something across.");
    command.add_text(cargo_, "cargo", "THING", "What to carry.");
    command.add_switch(fast_, "fast", "Hurry.");
    command.add_integer(trips_, "trips", 1, 10, "How often.");
    command.add_number(speed_, "speed", "How fast.");
    command.add_duration(pause_, "pause", "Between trips.");
    command.add({.name = "port",
                 .placeholder = "NAME",
                 .help = "Where to call; may be repeated.",
                 .default_text = "",
                 .apply = [this](const std::string& text) { ports_.push_back(text); },
                 .short_name = "p",
                 .repeatable = true});
    command.add_argument(
        {.name = "RIVER", .help = "Which one.", .required = false, .apply = [this](const std::string& text) {
           river_ = text;
         }});
    command.example("boat ferry --fast", "in a hurry");
    command.on_check([this] {
      if (fast_ && trips_ == 10) throw UsageError("--fast does not go with ten trips");
    });
    command.on_run([this] {
      ++runs_;
      if (cargo_ == "elephant") throw std::runtime_error("the boat sank");
      return 0;
    });
    line_.add("swim", "do it alone").on_run([] { return 0; });
  }

  int run(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    const auto environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    return line_.run(std::move(arguments), {.out = out_, .err = err_, .environment = environment, .width = width_});
  }

  CommandLine line_{"boat", "crosses rivers"};
  std::map<std::string, std::string> environment_;
  std::ostringstream out_;
  std::ostringstream err_;
  std::string cargo_ = "sheep";
  bool fast_ = false;
  int trips_ = 1;
  double speed_ = 0.5;
  async::Duration pause_ = 90s;
  std::vector<std::string> ports_;
  std::string river_;
  int runs_ = 0;
  std::size_t width_ = 80;
};

TEST_F(CommandLineTest, FlagsSetTheirVariables) {
  EXPECT_EQ(run({"ferry", "--cargo=wolf", "--fast", "--trips", "3", "--speed", "-1.5", "--pause=1m", "-p", "a",
                 "--port=b", "-p=c", "Rhine"}),
            0);
  EXPECT_EQ(cargo_, "wolf");
  EXPECT_TRUE(fast_);
  EXPECT_EQ(trips_, 3);
  EXPECT_EQ(speed_, -1.5);
  EXPECT_EQ(pause_, 1min);
  EXPECT_THAT(ports_, ElementsAre("a", "b", "c"));
  EXPECT_EQ(river_, "Rhine");
}

TEST_F(CommandLineTest, WithoutFlagsTheDefaultsAreUsed) {
  EXPECT_EQ(run({"ferry"}), 0);
  EXPECT_EQ(cargo_, "sheep");
  EXPECT_FALSE(fast_);
  EXPECT_EQ(runs_, 1);
}

// As in $KUBECONFIG: HUBFERRY_BOOTSTRAP_KUBECONFIG names several files.
TEST_F(CommandLineTest, AVariableOfARepeatableFlagHasOneValueBetweenEachTwoColons) {
  environment_ = {{"HUBFERRY_PORT", "a:b::c"}, {"HUBFERRY_CARGO", "goat:wolf"}};
  EXPECT_EQ(run({"ferry"}), 0);
  EXPECT_THAT(ports_, ElementsAre("a", "b", "c"));
  EXPECT_EQ(cargo_, "goat:wolf");
}

TEST_F(CommandLineTest, TheEnvironmentSetsFlagsButTheFlagWins) {
  environment_ = {
      {"HUBFERRY_CARGO", "goat"}, {"HUBFERRY_TRIPS", "7"}, {"HUBFERRY_FAST", "true"}, {"HUBFERRY_PAUSE", ""}};
  EXPECT_EQ(run({"ferry", "--trips=2"}), 0);
  EXPECT_EQ(cargo_, "goat");
  EXPECT_EQ(trips_, 2);
  EXPECT_TRUE(fast_);
  EXPECT_EQ(pause_, 90s) << "an empty variable counts as not set";
}

TEST_F(CommandLineTest, ASwitchCanBeSwitchedOff) {
  environment_ = {{"HUBFERRY_FAST", "true"}};
  EXPECT_EQ(run({"ferry", "--fast=false"}), 0);
  EXPECT_FALSE(fast_);
}

TEST_F(CommandLineTest, ASwitchDoesNotTakeTheNextArgument) {
  EXPECT_EQ(run({"ferry", "--fast", "Rhine"}), 0);
  EXPECT_TRUE(fast_);
  EXPECT_EQ(river_, "Rhine");
}

TEST_F(CommandLineTest, TheLastOfTwoWins) {
  EXPECT_EQ(run({"ferry", "--cargo", "a", "--cargo", "b"}), 0);
  EXPECT_EQ(cargo_, "b");
}

TEST_F(CommandLineTest, AnEmptyValueIsAValue) {
  EXPECT_EQ(run({"ferry", "--cargo=", "Rhine"}), 0);
  EXPECT_EQ(cargo_, "");
  EXPECT_EQ(river_, "Rhine");
}

TEST_F(CommandLineTest, UsageErrorsNameTheMistakeAndExitWith2) {
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{}, "boat: no command given"},
      {{"fery"}, "boat: unknown command 'fery' (did you mean ferry?)"},
      {{"xyzzy"}, "boat: unknown command 'xyzzy'\n"},
      {{"--fast", "ferry"}, "boat: --fast belongs after the command: boat ferry --fast"},
      {{"--nonsense"}, "boat: unknown flag --nonsense"},
      {{"ferry", "--crago=x"}, "boat ferry: unknown flag --crago (did you mean --cargo?)"},
      {{"ferry", "-x"}, "boat ferry: unknown flag -x"},
      {{"ferry", "--cargo"}, "boat ferry: --cargo needs a value"},
      {{"ferry", "--trips=11"}, "boat ferry: --trips: '11' is not an integer from 1 to 10"},
      {{"ferry", "--trips=2x"}, "--trips: '2x'"},
      {{"ferry", "--trips=99999999999999999999"}, "--trips: '99999999999999999999'"},
      {{"ferry", "--speed=fast"}, "--speed: 'fast' is not a number"},
      {{"ferry", "--speed=nan"}, "--speed: 'nan' is not a number"},
      {{"ferry", "--pause=10"}, "--pause: '10' is not a duration such as"},
      {{"ferry", "--pause=-1s"}, "--pause: '-1s' is not greater than zero"},
      {{"ferry", "--fast=maybe"}, "--fast: 'maybe' is neither true nor false"},
      {{"ferry", "--fast="}, "boat ferry: --fast: '' is neither true nor false"},
      {{"ferry", "Rhine", "Main"}, "boat ferry: unexpected argument 'Main'"},
      {{"ferry", "--trips", "--cargo", "a", "Rhine"}, "boat ferry: --trips: '--cargo' is not an integer"},
      {{"ferry", "--fast", "--trips=10"}, "boat ferry: --fast does not go with ten trips"},
  };
  for (const auto& [arguments, expected] : mistakes) {
    EXPECT_EQ(run(arguments), 2) << testing::PrintToString(arguments);
    EXPECT_THAT(err_.str(), HasSubstr(expected));
    EXPECT_THAT(err_.str(), HasSubstr(" --help' for usage.")) << "a hint where to look";
    EXPECT_THAT(out_.str(), IsEmpty());
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandLineTest, AMistakeInTheEnvironmentNamesTheVariable) {
  environment_ = {{"HUBFERRY_TRIPS", "many"}};
  EXPECT_EQ(run({"ferry"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("environment variable HUBFERRY_TRIPS: 'many' is not an integer"));
  EXPECT_EQ(run({"ferry", "--trips=2"}), 0) << "a variable that the flag overrides is not even read";
}

TEST_F(CommandLineTest, HelpShowsFlagsDefaultsVariablesAndExamples) {
  for (const auto& arguments : {std::vector<std::string>{"ferry", "--help"}, {"ferry", "-h"}, {"help", "ferry"}}) {
    EXPECT_EQ(run(arguments), 0);
    EXPECT_THAT(out_.str(),
                AllOf(HasSubstr("usage: boat ferry [flags] [RIVER]"), HasSubstr("Carries something across."),
                      HasSubstr("--pause DURATION (default: 1m30s)   $HUBFERRY_PAUSE"), HasSubstr("-p, --port NAME"),
                      HasSubstr("boat ferry --fast\n")));
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandLineTest, HelpFitsTheWindow) {
  auto& command =
      line_.add("long", "a summary that is a good deal longer than the window of whoever asks for it is wide");
  command.describe("Words and words and words and words and words and words.\n\nA second paragraph.");
  command.add({.name = "a-flag-of-some-length",
               .placeholder = "PLACEHOLDER",
               .help = "What it does, told at length so that it has to be broken.",
               .default_text = "something",
               .apply = [](const std::string&) {},
               .short_name = ""});
  command.exit_code("0", "all went well, and nothing else has to be said about that");
  command.example("boat long --a-flag-of-some-length a --a-flag-of-some-length b | sort", "what people would type");
  width_ = 50;
  for (const auto& arguments : {std::vector<std::string>{"long", "--help"}, {"--help"}}) {
    EXPECT_EQ(run(arguments), 0);
    std::istringstream lines{out_.str()};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 50U) << line;
  }
  run({"long", "--help"});
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("\n\nA second paragraph.\n"), HasSubstr("\nexit codes:\n  0     all went well"),
                    HasSubstr("  boat long --a-flag-of-some-length a \\\n      --a-flag-of-some-length b | sort\n")));
}

// A variable that was set for one command must not steer another one that has a flag of the same name.
TEST_F(CommandLineTest, FlagsOfASingleCallHaveNoVariable) {
  auto& command = line_.add("row", "");
  std::string output = "text";
  command.add_text(output, "output", "FORMAT", "How.");
  command.add_text(cargo_, "cargo", "THING", "What to carry.");
  command.not_from_environment({"output"});
  command.on_run([] { return 0; });
  environment_ = {{"HUBFERRY_OUTPUT", "json"}, {"HUBFERRY_CARGO", "goat"}};
  EXPECT_EQ(run({"row"}), 0);
  EXPECT_EQ(output, "text");
  EXPECT_EQ(cargo_, "goat");
  run({"row", "--help"});
  EXPECT_THAT(out_.str(), AllOf(Not(HasSubstr("HUBFERRY_OUTPUT")), HasSubstr("$HUBFERRY_CARGO")));
  EXPECT_THROW(command.not_from_environment({"outptu"}), std::logic_error);
}

TEST_F(CommandLineTest, HelpWinsOverBadValues) {
  EXPECT_EQ(run({"ferry", "--trips=x", "--help"}), 0);
}

TEST_F(CommandLineTest, TheProgramsHelpListsTheCommands) {
  for (const auto& arguments : {std::vector<std::string>{"--help"}, {"-h"}, {"help"}}) {
    EXPECT_EQ(run(arguments), 0);
    EXPECT_THAT(out_.str(), AllOf(HasSubstr("ferry   carry something\n"), HasSubstr("swim    do it alone\n")));
  }
}

TEST_F(CommandLineTest, AFailurePrintsItsMessageAndExitsWith1) {
  EXPECT_EQ(run({"ferry", "--cargo=elephant"}), 1);
  EXPECT_EQ(err_.str(), "boat ferry: the boat sank\n");
}

TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsAFailure) {
  line_.add("loud", "say something").on_run([this] {
    out_ << "something";
    out_.setstate(std::ios::badbit);
    return 0;
  });
  EXPECT_EQ(run({"loud"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("cannot write"));
}

TEST_F(CommandLineTest, AFlagDeclaredTwiceIsABug) {
  auto& command = line_.add("twice", "");
  command.add_switch(fast_, "fast", "");
  EXPECT_THROW(command.add_switch(fast_, "fast", ""), std::logic_error);
}

TEST(FlagValues, ListsHaveNoEmptyAndNoDuplicateItems) {
  EXPECT_THAT(parse_list("a,b"), ElementsAre("a", "b"));
  EXPECT_THAT(parse_list(""), IsEmpty());
  for (const auto* bad : {",", "a,", ",a", "a,,b", "a,b,a"})
    EXPECT_THROW(parse_list(bad), std::invalid_argument) << bad;
}

TEST(FlagValues, NamespacesAndNamesAreValidated) {
  EXPECT_EQ(parse_namespace("hubferry-system"), "hubferry-system");
  EXPECT_EQ(parse_namespace(std::string(63, 'a')), std::string(63, 'a'));
  for (const std::string bad : {"", "A", "-a", "a-", "a_b", "a.b", "a/b"})
    EXPECT_THROW(parse_namespace(bad), std::invalid_argument) << bad;
  EXPECT_THROW(parse_namespace(std::string(64, 'a')), std::invalid_argument);
  EXPECT_EQ(parse_object_name("a.b-c.d"), "a.b-c.d");
  EXPECT_EQ(parse_object_name(std::string(253, 'a')), std::string(253, 'a'));
  for (const auto* bad : {"", ".", "a.", ".a", "a..b", "a.-b", "A", "a b", "a/b"})
    EXPECT_THROW(parse_object_name(bad), std::invalid_argument) << bad;
  EXPECT_THROW(parse_object_name(std::string(254, 'a')), std::invalid_argument);
}

TEST(FlagValues, TheNearestWordIsSuggestedOnlyIfItIsClose) {
  const std::vector<std::string> words{"manager", "agent", "sim"};
  EXPECT_EQ(nearest("mangaer", words), "manager");
  EXPECT_EQ(nearest("manger", words), "manager");
  EXPECT_EQ(nearest("agents", words), "agent");
  EXPECT_EQ(nearest("status", words), std::nullopt);
  EXPECT_EQ(nearest("x", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

class ManagerOptionsTest : public testing::Test {
 protected:
  ManagerOptionsTest() {
    auto& command = line_.add("manager", "");
    options_.add_to(command);
    command.on_check([this] { options_.check(); });
    command.on_run([] { return 0; });
  }

  int run(std::vector<std::string> flags) {
    err_.str("");
    flags.insert(flags.begin(), "manager");
    const auto no_environment = [](const std::string&) { return std::optional<std::string>(); };
    return line_.run(std::move(flags), {.out = out_, .err = err_, .environment = no_environment});
  }

  ManagerOptions options_;
  CommandLine line_{"hubferry", ""};
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(ManagerOptionsTest, DefaultsAreThoseOfControllerRuntime) {
  EXPECT_EQ(run({}), 0);
  EXPECT_EQ(options_.serving.metrics_address, ":8080");
  EXPECT_EQ(options_.serving.health_address, ":8081");
  EXPECT_EQ(options_.lease_duration, 15s);
  EXPECT_EQ(options_.renew_deadline, 10s);
  EXPECT_EQ(options_.retry_period, 2s);
  EXPECT_FALSE(options_.leader_elect);
  EXPECT_THAT(options_.controllers, ElementsAre("migration"));
  EXPECT_GE(options_.effective_threads(), 1U);
}

TEST_F(ManagerOptionsTest, AllFlagsAreAccepted) {
  EXPECT_EQ(
      run({"--kubeconfig=k", "--namespace=n", "--watch-namespace=w", "--leader-elect",
           "--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=5s",
           "--leader-elect-resource-name=l", "--leader-elect-resource-namespace=ln", "--metrics-bind-address=0",
           "--health-probe-bind-address=[::1]:1", "--controllers=migration", "--max-concurrent-migrations=7",
           "--threads=3", "--kube-api-qps=12.5", "--kube-api-burst=30", "--log-level=debug", "--log-format=text",
           "--shutdown-grace-period=5s"}),
      0)
      << err_.str();
  EXPECT_EQ(options_.kubeconfig, "k");
  EXPECT_EQ(options_.effective_namespace(), "n");
  EXPECT_EQ(options_.watch_namespace, "w");
  EXPECT_TRUE(options_.leader_elect);
  EXPECT_EQ(options_.lease_name, "l");
  EXPECT_EQ(options_.lease_namespace, "ln");
  EXPECT_EQ(options_.serving.metrics_address, "0");
  EXPECT_THAT(options_.controllers, ElementsAre("migration"));
  EXPECT_EQ(options_.max_concurrent_migrations, 7);
  EXPECT_EQ(options_.effective_threads(), 3U);
  EXPECT_EQ(options_.kube_api_qps, 12.5);
  EXPECT_EQ(options_.log.level, obs::Level::debug);
  EXPECT_EQ(options_.log.format, obs::LogFormat::text);
  EXPECT_EQ(options_.shutdown_grace_period, 5s);
}

TEST_F(ManagerOptionsTest, MistakesAreFoundBeforeAnythingRuns) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"--controllers=migraton", "did you mean migration?"},
      {"--controllers=", "at least one controller is required"},
      {"--controllers=migration,relocater", "did you mean relocator?"},
      {"--log-level=loud", "'loud' is invalid: use debug, info, warn or error"},
      {"--log-format=yaml", "use json or text"},
      {"--metrics-bind-address=8080", "'8080' is not a bind address"},
      {"--namespace=Not_OK", "is not a valid namespace"},
      {"--leader-elect-resource-name=My Lease", "--leader-elect-resource-name: 'My Lease' is not a valid name"},
      {"--leader-elect-resource-name=", "--leader-elect-resource-name: '' is not a valid name"},
      {"--threads=-1", "'-1' is not an integer"},
      {"--max-concurrent-migrations=0", "'0' is not an integer"},
      {"--ui-auth=token", "--ui-auth=token needs --ui-bind-address: without it there is no page"},
      {"--leader-elect-lease-duration=900ms", "--leader-elect-lease-duration (900ms) must be at least 1s"},
      {"--leader-elect-lease-duration=10s", "must be longer than --leader-elect-renew-deadline (10s)"},
      {"--leader-elect-retry-period=9s", "1.2 times --leader-elect-retry-period (9s)"},
  };
  for (const auto& [flag, expected] : mistakes) {
    options_ = ManagerOptions{};
    EXPECT_EQ(run({flag}), 2) << flag;
    EXPECT_THAT(err_.str(), HasSubstr(expected)) << flag;
  }
}

TEST(VersionCommand, PrintsTextOrJson) {
  std::ostringstream out;
  std::ostringstream err;
  CommandLine line{"hubferry", ""};
  add_version_command(line, out);
  const ProcessContext context{
      .out = out, .err = err, .environment = [](const std::string&) { return std::optional<std::string>(); }};
  EXPECT_EQ(line.run({"--version"}, context), 0);
  EXPECT_THAT(out.str(), testing::StartsWith("hubferry "));
  out.str("");
  EXPECT_EQ(line.run({"version", "-o", "json"}, context), 0);
  EXPECT_TRUE(boost::json::parse(out.str()).as_object().contains("version"));
  EXPECT_EQ(line.run({"version", "-o", "xml"}, context), 2);
}

TEST_F(CommandLineTest, ARepeatableArgumentTakesAllWordsFromItsPlace) {
  std::vector<std::string> words;
  const auto take = [&](const std::string& text) {
    if (text.empty()) throw std::invalid_argument("'' is not a name");
    words.push_back(text);
  };
  auto& command = line_.add("row", "with others");
  command.add_argument({.name = "FIRST", .help = "Who.", .required = true, .apply = take});
  command.add_argument(
      {.name = "OTHER", .help = "Who else.", .required = false, .apply = take, .choices = {}, .repeatable = true});
  command.on_run([] { return 0; });
  EXPECT_EQ(run({"row", "a", "b", "c"}), 0) << err_.str();
  EXPECT_THAT(words, ElementsAre("a", "b", "c"));
  EXPECT_EQ(run({"row", "a"}), 0);
  EXPECT_EQ(run({"row"}), 2);
  EXPECT_EQ(run({"row", "a", "b", ""}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("OTHER: '' is not a name"));
  run({"row", "--help"});
  EXPECT_THAT(out_.str(), HasSubstr("usage: boat row FIRST [OTHER...]\n"));
  EXPECT_THAT(zsh_completion(line_), HasSubstr("'1:FIRST: ' \\\n        '*:OTHER: '"));
}

// kubectl runs kubectl-boat for `kubectl boat`: what people can type is that.
TEST_F(CommandLineTest, APluginOfKubectlIsCalledByKubectl) {
  line_.set_invoked_as("/usr/bin/boat");
  EXPECT_EQ(line_.invocation(), "boat");
  line_.set_invoked_as("/usr/bin/kubectl-boat");
  run({"ferry", "--help"});
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("usage: kubectl boat ferry [flags]"), HasSubstr("  kubectl boat ferry --fast")));
  EXPECT_EQ(run({"ferry", "--trips", "0"}), 2);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("kubectl boat ferry: --trips"), HasSubstr("'kubectl boat ferry --help'")));
  run({"--help"});
  EXPECT_THAT(out_.str(), HasSubstr("usage: kubectl boat COMMAND"));
}

}  // namespace
}  // namespace hubferry::app
