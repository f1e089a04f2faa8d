// In each phase of a migration somebody changes its spec: each field, to what is valid and to what is not, on API
// servers that check all, less, or nothing. A part of the changes is tried by default: see stride_of_matrix().
#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "flow_world.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::worlds {
namespace {

namespace phases = migration::phases;

struct Server {
  const char* name;
  Checks checks;
  std::size_t index;
};

void PrintTo(const Server& server, std::ostream* out) {
  *out << server.name;
}

/// Each edit in a clone, which continues with it.
void edit_in_clones(FlowWorld& flow, CrashMatrix& matrix, const std::string& phase) {
  for (const auto& edit : spec_edits("hub1", "hub2")) {
    if (!matrix.branch(phase + ", " + json::serialize(edit))) continue;
    flow.spawn(flow.edit_spec(edit));
    return;
  }
}

class SpecMatrixTest : public testing::TestWithParam<Server> {
 protected:
  CrashMatrix matrix{stride_of_matrix(29), GetParam().index * 7};
  FlowWorld flow{matrix, FlowWorld::Victim::nobody, GetParam().checks};

  void edit_in(const char* phase) {
    flow.on_phase(phase, [this, phase] { edit_in_clones(flow, matrix, phase); });
  }
  void expect_no_harm(const char* ending) {
    flow.run();
    EXPECT_EQ(flow.invariants.phase_of("m1"), ending);
    EXPECT_EQ(matrix.failures(), "");
    std::cout << GetParam().name << ": " << matrix.points() << " of " << matrix.candidates() << " edits\n";
  }
};

TEST_P(SpecMatrixTest, NoEditOfAMigrationThatSucceedsLosesACluster) {
  for (const auto* phase : {phases::pending, phases::validating, phases::initializing, phases::deploying,
                            phases::registering, phases::cleaning, phases::completed})
    edit_in(phase);
  expect_no_harm("Completed");
}

TEST_P(SpecMatrixTest, NoEditOfAMigrationThatIsRolledBackLosesACluster) {
  flow.on_phase(phases::registering, [this] { flow.switch_off_both(); });
  flow.on_phase(phases::rollbacking, [this] {
    flow.spawn(flow.switch_on_later());
    edit_in_clones(flow, matrix, phases::rollbacking);
  });
  edit_in(phases::failed);
  expect_no_harm("Failed");
}

INSTANTIATE_TEST_SUITE_P(Servers, SpecMatrixTest,
                         testing::Values(Server{"AllChecks", Checks::all, 0}, Server{"NoRules", Checks::no_rules, 1},
                                         Server{"NoSchema", Checks::no_schema, 2}),
                         [](const auto& server) { return server.param.name; });

void collect_fields(const json::object& schema, const std::string& path, std::set<std::string>& fields) {
  for (const auto& field : schema.at("properties").as_object()) {
    const auto name = path + std::string{field.key()};
    if (field.value().as_object().contains("properties"))
      collect_fields(field.value().as_object(), name + ".", fields);
    else
      fields.insert(name);
  }
}

void collect_edited(const json::object& patch, const std::string& path, std::set<std::string>& fields) {
  for (const auto& field : patch) {
    const auto name = path + std::string{field.key()};
    fields.insert(name);
    if (field.value().is_object()) collect_edited(field.value().as_object(), name + ".", fields);
  }
}

TEST(SpecEdits, ConcernEachFieldOfTheSchema) {
  sim::VirtualWorld world{{.hubs = {"hub1"}}};
  const auto& kind = migration::managed_cluster_migrations;
  const auto definition =
      world.global().object(kube::resources::custom_resource_definitions, {"", kind.plural + "." + kind.group});
  ASSERT_TRUE(definition);
  const auto* versions = definition->find({"spec", "versions"});
  ASSERT_NE(versions, nullptr);
  const auto& schema = versions->at(0).at("schema").at("openAPIV3Schema").at("properties").at("spec").as_object();
  std::set<std::string> fields;
  collect_fields(schema, "", fields);
  ASSERT_FALSE(fields.empty());
  std::set<std::string> edited;
  for (const auto& edit : spec_edits("hub1", "hub2")) collect_edited(edit, "", edited);
  for (const auto& field : fields) EXPECT_TRUE(edited.contains(field)) << field;
}

}  // namespace
}  // namespace hubferry::worlds
