#include "hubferry/phase/render.hpp"

#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

class RenderTest : public PhaseTest {
 protected:
  std::string checklist() { return render_checklist(definition, progress_of(definition, item())); }
};

TEST_F(RenderTest, AChecklistShowsTheTreeWithStatusTimesAndEachErrorOnce) {
  handle("precheck", Handlers::parallel({.name = {}, .description = "is everything ready?"},
                                        {leaf("vpc", after(2s)),
                                         Handlers::serial(named("disks"), {leaf("size", always(done())),
                                                                           leaf("copy", always(not_done())),
                                                                           leaf("verify", always(done()))}),
                                         leaf("quota", always(failed(Error::network("no answer"))))}));
  reconcile_once();
  EXPECT_EQ(checklist(),
            "[x] initialize (0s)\n"
            "[!] precheck: is everything ready? (2s)\n"
            "  [x] vpc (2s)\n"
            "  [>] disks\n"
            "    [x] size (0s)\n"
            "    [>] copy\n"
            "    [ ] verify\n"
            "  [!] quota (0s) -- no answer (will be retried)\n"
            "[ ] migrate\n");
}

TEST_F(RenderTest, TheTerminalPhaseThatWasReachedIsShown) {
  reconcile_to_the_end();
  EXPECT_THAT(checklist(), testing::EndsWith("[x] migrate (0s)\n[x] success\n"));
  item() = Item{};
  handle("migrate", leaf("move", always(failed("no"))));
  reconcile_to_the_end();
  EXPECT_THAT(checklist(), testing::EndsWith("[!] migrate (0s) -- no\n[!] failed\n"));
}

TEST_F(RenderTest, AMachineThatHasNotBegunIsBlank) {
  definition.normalize();
  EXPECT_EQ(checklist(), "[ ] initialize\n[ ] precheck\n[ ] migrate\n");
  item().status.phase = "initialize";
  EXPECT_EQ(checklist(), "[>] initialize\n[ ] precheck\n[ ] migrate\n");
}

TEST_F(RenderTest, OfThousandsOnlyCountsAndFailuresAreShown) {
  definition.limit = 2;
  handle("initialize",
         Handlers::parallel({}, {leaf("a", always(done())), leaf("b", always(failed(Error::network("x")))),
                                 leaf("c", always(done()))}));
  reconcile_once();
  EXPECT_THAT(checklist(), testing::StartsWith("[!] initialize (0s) -- 2 of 3 done, 1 failed\n"
                                               "  [!] b (0s) -- x (will be retried)\n[ ] precheck\n"));
}

TEST_F(RenderTest, JsonHoldsTheSameAndTheObjectDetail) {
  handle("migrate", Handlers::leaf({.name = "move"}, always(done())).with_detail([](const Item& item, const State&) {
    return json::value(item.status.counter);
  }));
  item().status.counter = 17;
  reconcile_to_the_end();
  const auto rendered = render_json(definition, progress_of(definition, item()), &item());
  EXPECT_EQ(rendered.at("phase"), "success");
  EXPECT_EQ(rendered.at("ending"), "success");
  const auto& migrate = rendered.at("phases").as_array().at(2).as_object();
  EXPECT_EQ(migrate.at("name"), "migrate");
  EXPECT_EQ(migrate.at("view"), "objectDetail");
  EXPECT_EQ(migrate.at("mark"), "done");
  EXPECT_EQ(migrate.at("detail"), 17);
  EXPECT_TRUE(migrate.at("state").at("done").as_bool());
  EXPECT_FALSE(render_json(definition, progress_of(definition, item()))
                   .at("phases")
                   .as_array()
                   .at(2)
                   .as_object()
                   .contains("detail"));
}

TEST_F(RenderTest, MermaidDrawsTheTables) {
  definition.terminals = {{"all \"good\"", Ending::success}, {"failed", Ending::failure}};
  definition.normal = {{"initialize", "migrate"}, {"migrate", "all \"good\""}};
  definition.error = {{"initialize", "failed"}, {"migrate", "failed"}};
  definition.handlers.erase("precheck");
  definition.normalize();
  EXPECT_EQ(render_mermaid(definition),
            "flowchart TD\n"
            "  p0[\"initialize\"]\n"
            "  p1[\"migrate\"]\n"
            "  p2([\"all #quot;good#quot;\"])\n"
            "  p3([\"failed\"])\n"
            "  p0 --> p1\n"
            "  p0 -. error .-> p3\n"
            "  p1 --> p2\n"
            "  p1 -. error .-> p3\n");
  EXPECT_THAT(render_dot(definition), testing::HasSubstr("\"migrate\" -> \"all \\\"good\\\"\";"));
}

TEST_F(RenderTest, AllKindsOfTransitionsAreDistinguishable) {
  definition.forced = {{"migrate", "precheck", "the \"plan\" changed"}, {"precheck", "initialize"}};
  definition.resumptions = {{"failed", "migrate", "retry requested", [](const Item&) { return true; }, {}}};
  definition.normalize();
  EXPECT_THAT(render_mermaid(definition),
              testing::AllOf(testing::HasSubstr("  p1 --> p2\n  p1 -. error .-> p4\n  p1 ==> p0\n"),
                             testing::HasSubstr("  p2 ==>|\"the #quot;plan#quot; changed\"| p1\n"),
                             testing::HasSubstr("  p5 -.->|\"resume: retry requested\"| p2\n")));
  EXPECT_THAT(render_dot(definition),
              testing::AllOf(
                  testing::HasSubstr("\"migrate\" -> \"precheck\" [style=bold, label=\"the \\\"plan\\\" changed\"];"),
                  testing::HasSubstr("\"precheck\" -> \"initialize\" [style=bold];"),
                  testing::HasSubstr("\"failed\" -> \"migrate\" [style=dashed, color=blue, "
                                     "label=\"retry requested\"];")));
}

TEST_F(RenderTest, DotDrawsTheTables) {
  definition.normalize();
  const auto dot = render_dot(definition);
  EXPECT_THAT(dot, testing::StartsWith("digraph phases {\n"));
  EXPECT_THAT(dot, testing::HasSubstr("\"initialize\" -> \"precheck\";\n"));
  EXPECT_THAT(dot, testing::HasSubstr("\"precheck\" -> \"prefailed\" [style=dotted, color=red];\n"));
  EXPECT_THAT(dot, testing::HasSubstr("\"success\" [shape=doublecircle, color=green];\n"));
}

}  // namespace
}  // namespace hubferry::phase::test
