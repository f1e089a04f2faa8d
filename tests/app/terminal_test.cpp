#include "app/cli/terminal.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "app/cli/output.hpp"

namespace hubferry::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Terminal no_terminal{};
const Terminal tiny{.interactive = true, .colour = false, .width = 20, .height = 4};
const Terminal colourful{.interactive = true, .colour = true, .width = 80, .height = 24};

TEST(TerminalText, FitsByCharactersNotBytes) {
  EXPECT_EQ(fitted("Größenwahn", 5), "Größ…");
  EXPECT_EQ(fitted("Größe", 5), "Größe");
  EXPECT_EQ(fitted("anything", 0), "anything");
  EXPECT_EQ(fitted("ab", 1), "…");
  EXPECT_EQ(fitted("", 3), "");
}

// A condition's message comes from somebody else: it must not move the cursor or paint the screen.
TEST(TerminalText, RemovesControlCharacters) {
  EXPECT_EQ(fitted("a\x1b[2Jb\nc\x7f", 0), "a [2Jb c ");
  EXPECT_EQ(fitted("bad \xff byte", 0), "bad \xEF\xBF\xBD byte");
  EXPECT_EQ(fitted("a\xC2\x9B"
                   "2Jb\xC2\xA0",
                   0),
            "a 2Jb\xC2\xA0")
      << "U+009B begins a sequence, U+00A0 is a blank";
  EXPECT_EQ(harmless("a\x1b[2J\nb"), "a [2J\nb");
}

TEST(TerminalText, PaintsOnlyWhereColourIsOn) {
  EXPECT_EQ(painted("x", Colour::red, false), "x");
  EXPECT_EQ(painted("x", Colour::red, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(painted("x", Colour::plain, true), "x");
}

TEST(TerminalText, ClippingIgnoresColourCodes) {
  const auto text = painted("abc", Colour::red, true) + "def";
  EXPECT_EQ(clipped(text, 0), text);
  EXPECT_EQ(clipped(text, 6), text);
  EXPECT_EQ(clipped(text, 2), "\x1b[31mab\x1b[0m") << "the colour is ended";
  EXPECT_EQ(clipped("äöü", 2), "äö");
}

TEST(TerminalText, WrapsBetweenWords) {
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("one two three", 0), ElementsAre("one two three"));
  EXPECT_THAT(wrapped("one two", 9, "Say: ", "     "), ElementsAre("Say: one", "     two"));
  EXPECT_THAT(wrapped("Größe zählt", 5), ElementsAre("Größe", "zählt"));
  EXPECT_THAT(wrapped("unbreakable x", 4), ElementsAre("unbreakable", "x"));
  EXPECT_THAT(wrapped("a b\n\nc", 10), ElementsAre("a b", "", "c"));
}

TEST(NaturalOrder, ComparesNumbersByValue) {
  EXPECT_TRUE(natural_less("cluster-2", "cluster-10"));
  EXPECT_FALSE(natural_less("cluster-10", "cluster-2"));
  EXPECT_TRUE(natural_less("a", "a-1"));
  EXPECT_TRUE(natural_less("a-09", "a-10"));
  EXPECT_TRUE(natural_less("a1b", "a1c"));
  EXPECT_TRUE(natural_less("a99999999999999999999998", "a99999999999999999999999")) << "of any length";
  EXPECT_FALSE(natural_less("same-7", "same-7"));
  EXPECT_NE(natural_less("a-1", "a-01"), natural_less("a-01", "a-1")) << "two names are never the same place";
}

TEST(LiveArea, ReplacesWhatItDrew) {
  std::ostringstream out;
  LiveArea area{out, tiny};
  area.draw({"one", "two"});
  area.draw({"three"});
  EXPECT_EQ(out.str(), "one\ntwo\n\x1b[2A\r\x1b[Jthree\n");
}

TEST(LiveArea, NeverDrawsMoreThanFitsOnTheScreen) {
  std::ostringstream out;
  LiveArea area{out, tiny};
  area.draw({"1", "2", "3", "4", "5"});
  EXPECT_EQ(out.str(), "1\n2\n… and 3 more lines\n");
  out.str("");
  area.draw({std::string(30, 'x')});
  EXPECT_EQ(out.str(), "\x1b[3A\r\x1b[J" + std::string(20, 'x') + "\n") << "a line that wraps would count as two";
}

TEST(LiveArea, TheLastLinesCanBeKeptWhenOthersAreOmitted) {
  std::ostringstream out;
  LiveArea area{out, tiny};
  area.draw({"1", "2", "3", "4", "total"}, 1);
  EXPECT_EQ(out.str(), "1\n… and 3 more lines\ntotal\n");
}

TEST(LiveArea, CanBeErasedOrKept) {
  std::ostringstream out;
  LiveArea area{out, tiny};
  area.draw({"live"});
  out.str("");
  area.erase();
  area.draw({"again"});
  EXPECT_EQ(out.str(), "\x1b[1A\r\x1b[Jagain\n");
  area.keep();
  out.str("");
  area.draw({"next"});
  EXPECT_EQ(out.str(), "next\n");
}

TEST(TextTable, AlignsColumnsAndTruncatesTheLastOne) {
  TextTable table{{"NAME", "MESSAGE"}};
  table.add({"a", "short"});
  table.add({"longer", "a message that is too long"});
  table.add({"", ""});
  EXPECT_THAT(table.lines(no_terminal),
              ElementsAre("NAME     MESSAGE", "a        short", "longer   a message that is too long", "-        -"));
  EXPECT_THAT(table.lines(tiny),
              ElementsAre("NAME     MESSAGE", "a        short", "longer   a message …", "-        -"));
}

// "…" on a line of its own says nothing.
TEST(TextTable, ALastColumnWithoutRoomIsBelowItsRow) {
  TextTable table{{"NAME", "PHASE", "MESSAGE"}};
  table.add({"longer", "Failed", "because of the hub, and more"});
  table.add({"a", "Pending", ""});
  EXPECT_THAT(table.lines(tiny),
              ElementsAre("NAME     PHASE", "longer   Failed", "  because of the hu…", "a        Pending"));
  TextTable wide{{"NAME", "PHASE", "AGE", "MESSAGE"}};
  wide.add({"longer", "Failed", "12m", "why"});
  EXPECT_THAT(wide.lines(tiny), ElementsAre("NAME   PHASE  AGE", "longer Failed 12m", "  why"));
  TextTable brief{{"NAME", "PHASE", "AGE"}};
  brief.add({"longer", "Failed", "9s"});
  EXPECT_THAT(brief.lines(tiny), ElementsAre("NAME   PHASE  AGE", "longer Failed 9s"));
}

TEST(TextTable, ColourCodesTakeNoColumn) {
  TextTable table{{"A", "B"}};
  table.add({{"x", Colour::green}, "y"});
  EXPECT_EQ(table.lines(colourful)[1], "\x1b[32mx\x1b[0m   y");
}

TEST(YamlText, QuotesStringsThatYamlWouldMisread) {
  const kube::json::object object{{"name", "plain text"},
                                  {"number", "12"},
                                  {"truth", "true"},
                                  {"answer", "No"},
                                  {"empty", ""},
                                  {"colon", "a: b"},
                                  {"real", 12},
                                  {"yes", true},
                                  {"none", nullptr},
                                  {"list", kube::json::array{}},
                                  {"fields", kube::json::object{}},
                                  {"lines", "a\nb"}};
  EXPECT_EQ(
      to_yaml(object),
      "name: plain text\nnumber: \"12\"\ntruth: \"true\"\nanswer: \"No\"\nempty: \"\"\ncolon: \"a: b\"\nreal: 12\n"
      "\"yes\": true\nnone: null\nlist: []\nfields: {}\nlines: \"a\\nb\"\n");
}

TEST(JsonText, IsIndented) {
  const kube::json::object object{{"a", kube::json::array{1, kube::json::object{{"b", "x\"y"}}}},
                                  {"none", kube::json::object{}}};
  EXPECT_EQ(to_indented_json(object),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\\"y\"\n    }\n  ],\n  \"none\": {}\n}\n");
}

TEST(JsonText, ObjectsHaveTheirFieldsInTheUsualOrder) {
  const kube::json::object object{{"status", 1},
                                  {"data", 2},
                                  {"spec", 3},
                                  {"metadata", kube::json::object{{"uid", "u"}, {"name", "n"}}},
                                  {"kind", "Kind"}};
  EXPECT_EQ(kube::json::serialize(in_usual_order(object)),
            R"({"kind":"Kind","metadata":{"name":"n","uid":"u"},"spec":3,"data":2,"status":1})");
  const auto list = in_usual_order({{"items", kube::json::array{object}}, {"kind", "List"}});
  EXPECT_EQ(list.begin()->key(), "kind");
  EXPECT_EQ(list.at("items").at(0).as_object().begin()->key(), "kind");
}

TEST(YamlText, NestsObjectsAndLists) {
  const kube::json::object object{
      {"items", kube::json::array{kube::json::object{{"a", 1}, {"b", kube::json::array{"x", "y"}}},
                                  kube::json::array{1, 2}, "z"}},
      {"deep", kube::json::object{{"er", kube::json::object{{"still", true}}}}}};
  EXPECT_EQ(to_yaml(object),
            "items:\n- a: 1\n  b:\n  - x\n  - \"y\"\n- - 1\n  - 2\n- z\ndeep:\n  er:\n    still: true\n");
  EXPECT_EQ(to_yaml("only"), "only\n");
}

TEST(Plural, OneIsNotMany) {
  EXPECT_EQ(plural(0, "cluster"), "0 clusters");
  EXPECT_EQ(plural(1, "cluster"), "1 cluster");
  EXPECT_EQ(plural(2, "cluster"), "2 clusters");
}

TEST(Output, NumbersHaveNoExponents) {
  const kube::json::object object{{"seconds", 1200.0}, {"part", 0.25}, {"count", 3}};
  EXPECT_EQ(to_json_line(object), "{\"seconds\":1200,\"part\":0.25,\"count\":3}\n");
  EXPECT_EQ(to_indented_json(object), "{\n  \"seconds\": 1200,\n  \"part\": 0.25,\n  \"count\": 3\n}\n");
  EXPECT_EQ(to_yaml(object), "seconds: 1200\npart: 0.25\ncount: 3\n");
}

}  // namespace
}  // namespace hubferry::app
